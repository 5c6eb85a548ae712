"""The same ranking as a plain script has it: every sum is added up from the spans when it is wanted.

`baseline.py STATE ROUNDS` prints the median time in milliseconds, and the best tool.
"""

import sqlite3
import statistics
import sys
import time

HALF_LIFE_MS = 30 * 24 * 3600 * 1000


def middle(bucket):
    return (128 if bucket % 2 == 0 else 181) * (1 << (bucket // 2)) * 0.841 / 1000


def ranked(path):
    base = sqlite3.connect(path)
    now = time.time() * 1000
    sums = {}
    for package, version, begins, failure, bucket, count in base.execute(
        "SELECT package, version, begins, failure, bucket, count FROM spans"
    ):
        weight = count * 2 ** ((begins - now) / HALF_LIFE_MS)
        one = sums.setdefault((package, version), [0.0, 0.0, 0.0])
        one[0] += weight
        if not failure:
            one[1] += weight
            one[2] += weight * middle(bucket)
    tests = {
        (package, version): passed / total
        for package, version, total, passed in base.execute("SELECT package, version, total, passed FROM tests")
    }
    base.close()
    scores = []
    for key, (weight, well, millis) in sums.items():
        latency = max(0.0, 1 - millis / well / 1000) if well else 0.0
        score = 0.30 * tests.get(key, 0.0) + 0.25 * latency + 0.20 * 0.85 + 0.10 * well / weight
        scores.append((min(1.0, score), key))
    scores.sort(key=lambda one: (-one[0], one[1]))
    return scores


def main():
    path, rounds = sys.argv[1], int(sys.argv[2])
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        scores = ranked(path)
        times.append((time.perf_counter() - began) * 1000)
    print(f"{statistics.median(times):.3f} {len(scores)} {scores[0][1][0]}")


main()
