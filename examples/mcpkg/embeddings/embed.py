"""Turns a text into a vector; the input JSON is the last argument, or comes on stdin.

Each word adds one to, or takes one from, the place that its hash names, and the whole is brought to length one: no
model, no network, and the same vector everywhere.
"""

import hashlib
import json
import math
import re
import sys

given = json.loads(sys.argv[-1] if len(sys.argv) > 1 else sys.stdin.read())
size = int(given["model"].rsplit("-", 1)[1])
vector = [0.0] * size
for word in re.findall(r"\w+", given["text"].lower()):
    digest = hashlib.sha256(word.encode()).digest()
    vector[int.from_bytes(digest[:4], "big") % size] += 1.0 if digest[4] % 2 else -1.0
length = math.sqrt(sum(one * one for one in vector)) or 1.0
print(json.dumps({"embeddings": [round(one / length, 6) for one in vector], "model": given["model"]}))
