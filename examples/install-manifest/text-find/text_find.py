#!/usr/bin/env python3
"""Finds lines that contain a phrase, in a text or in a file.

    text_find.py text      reads {"text", "phrase", "limit"?} from stdin
    text_find.py file      reads {"path", "phrase", "limit"?} from stdin
    text_find.py forget    nothing is kept, so there is nothing to undo
"""

import json
import sys


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def search(lines, phrase, limit):
    needle = phrase.casefold()
    matches = []
    total = 0
    for number, line in enumerate(lines, start=1):
        if needle in line.casefold():
            total += 1
            if len(matches) < limit:
                matches.append({"line": number, "text": line.rstrip("\r\n")})
    return {"total": total, "matches": matches}


def run(command, request):
    phrase = request.get("phrase")
    if not isinstance(phrase, str) or not phrase:
        raise Refused("empty_phrase", "phrase must not be empty")
    limit = request.get("limit", 20)
    if command == "text":
        return search(request.get("text", "").splitlines(), phrase, limit)
    if command == "file":
        try:
            with open(request.get("path", ""), encoding="utf-8", errors="replace") as lines:
                return search(lines, phrase, limit)
        except OSError as problem:
            raise Refused("unreadable", problem.strerror or "the file cannot be read") from problem
    raise Refused("unknown_command", f"no such command: {command}")


def main():
    command = sys.argv[1] if len(sys.argv) == 2 else ""
    if command == "forget":
        print(json.dumps({"kept": []}))
        return 0
    try:
        result = run(command, json.load(sys.stdin))
    except ValueError:
        result = {"error": {"code": "bad_json", "message": "stdin holds no JSON object"}}
    except Refused as refusal:
        result = {"error": {"code": refusal.code, "message": str(refusal)}}
    print(json.dumps(result))
    return 1 if "error" in result else 0


if __name__ == "__main__":
    sys.exit(main())
