"""Changes the case of a text: `change_case.py upper|lower|title`, {"text": ...} on stdin."""

import json
import sys

CHANGES = {"upper": str.upper, "lower": str.lower, "title": str.title}

print(json.dumps({"text": CHANGES[sys.argv[1]](json.load(sys.stdin)["text"])}))
