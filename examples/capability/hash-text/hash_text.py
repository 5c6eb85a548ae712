"""Digests a text: {"text": ..., "algorithm"?: ...} on stdin."""

import hashlib
import json
import sys

ALGORITHMS = ("sha256", "sha512", "blake2b")


def main():
    request = json.load(sys.stdin)
    algorithm = request.get("algorithm", "sha256")
    if algorithm not in ALGORITHMS:
        print(json.dumps({"error": f"unknown algorithm: {algorithm}"}), file=sys.stderr)
        return 1
    digest = hashlib.new(algorithm, request["text"].encode("utf-8")).hexdigest()
    print(json.dumps({"algorithm": algorithm, "digest": digest}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
