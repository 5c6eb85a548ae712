"""Gives a message back; the input JSON is the last argument, or comes on stdin."""

import json
import sys

text = sys.argv[-1] if len(sys.argv) > 1 else sys.stdin.read()
print(json.dumps({"message": json.loads(text)["message"]}))
