"""Counts the words of a text: {"text": ...} as the last argument or on stdin, one line of JSON out."""

import json
import sys


def count(text):
    return {"words": len(text.split()), "characters": len(text)}


def main():
    try:
        given = sys.argv[-1] if len(sys.argv) > 1 else sys.stdin.read()
        result = count(json.loads(given)["text"])
    except (ValueError, KeyError, TypeError, AttributeError):
        print(json.dumps({"error": "expected a JSON object with the key text"}), file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
