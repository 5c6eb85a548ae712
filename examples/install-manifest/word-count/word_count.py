#!/usr/bin/env python3
"""Counts words.

    word_count.py count                           reads {"text": ...} from stdin
    word_count.py longest --top N [--min N] -- TEXT
"""

import argparse
import json
import re
import sys


def count(text):
    return {
        "lines": len(text.splitlines()),
        "words": len(text.split()),
        "characters": len(text),
    }


def longest(text, top, minimum):
    seen = dict.fromkeys(word for word in re.findall(r"\w+", text) if len(word) >= minimum)
    return {"words": sorted(seen, key=len, reverse=True)[:top]}


def main():
    parser = argparse.ArgumentParser(prog="word-count")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("count")
    by_length = commands.add_parser("longest")
    by_length.add_argument("--top", type=int, default=3)
    by_length.add_argument("--min", type=int, default=1)
    by_length.add_argument("text")
    arguments = parser.parse_args()

    if arguments.command == "longest":
        result = longest(arguments.text, arguments.top, arguments.min)
    else:
        try:
            result = count(json.load(sys.stdin)["text"])
        except (ValueError, KeyError, TypeError):
            failure = {"code": "bad_input", "message": "expected a JSON object with the key text"}
            print(json.dumps({"error": failure}))
            return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
