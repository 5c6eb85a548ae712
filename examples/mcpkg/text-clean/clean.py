"""Tidies the white space of a text; the input JSON is the last argument, or comes on stdin."""

import json
import sys

text = json.loads(sys.argv[-1] if len(sys.argv) > 1 else sys.stdin.read())["text"]
lines = (" ".join(line.split()) for line in text.splitlines())
cleaned = "\n".join(line for line in lines if line)
print(json.dumps({"text": cleaned, "removed": len(text) - len(cleaned)}))
