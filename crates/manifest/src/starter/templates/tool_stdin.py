#!/usr/bin/env python3
"""Counts the words of a text: {"text": ...} on stdin, one line of JSON on stdout."""

import json
import sys


def count(text):
    return {"words": len(text.split()), "characters": len(text)}


def main():
    try:
        result = count(json.load(sys.stdin)["text"])
    except (ValueError, KeyError, TypeError, AttributeError):
        print(json.dumps({"error": "expected a JSON object with the key text"}), file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
