"""Measures `haft test`: a thousand trivial tests of a Python function that is kept warm, in files of their own; the same
with one job; and the same calls one by one, each by a `haft call` of its own. The rivals take turns; figures are medians.

`measure.py HAFT`
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = 1_000
CALLS = 40
ROUNDS = 5
GOAL = 1_000  # tests a second

haft = os.path.abspath(sys.argv[1])
folder = tempfile.TemporaryDirectory(prefix="haft-bench-", dir="/var/tmp")
os.chdir(folder.name)


def write(path, document):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(document if isinstance(document, str) else json.dumps(document))


write(
    "tool/manifest.json",
    {
        "id": "demo.python",
        "type": "tool",
        "version": "1.0.0",
        "description": "Gives a number back.",
        "origin": {"source": "local", "digest": "0" * 64},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
        "permissions": {"network": "deny", "filesystem": "none", "devices": []},
        "runtime": {
            "sandbox": "process",
            "resources": {"cpu": "2", "memory": "512Mi"},
            "timeout_seconds": 20,
        },
        "trust_level": "local",
        "implementation": {"kind": "python", "python": {"callable": "demo:run"}},
    },
)
write("tool/demo.py", "def run(input):\n    return {'n': input['n']}\n")
for n in range(TESTS):
    test = {"name": f"test {n}", "input": {"n": n}, "expected": {"n": n}}
    write(f"tool/tests/{n:04}.test.json", test)


def run(*arguments):
    began = time.monotonic()
    done = subprocess.run(
        [haft, "--home", "home", "--non-interactive", *arguments], capture_output=True, text=True
    )
    took = time.monotonic() - began
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-500:]
    return took, done.stdout


def tested(*arguments):
    took, told = run("test", "./tool", "--json", *arguments)
    assert json.loads(told)["passed"] == TESTS
    return took


def called():
    """How long a thousand calls would take, by so many of them."""
    took = 0
    for n in range(CALLS):
        one, told = run("call", "--from", "./tool", json.dumps({"n": n}))
        assert json.loads(told) == {"n": n}
        took += one
    return took / CALLS * TESTS


tested()
side_by_side, in_a_row, one_by_one = [], [], []
for _ in range(ROUNDS):
    side_by_side.append(tested())
    in_a_row.append(tested("--jobs", "1"))
    one_by_one.append(called())
side_by_side, in_a_row, one_by_one = map(
    statistics.median, (side_by_side, in_a_row, one_by_one)
)
memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
for name, took in [
    ("haft test", side_by_side),
    ("haft test --jobs 1", in_a_row),
    ("haft call, each", one_by_one),
]:
    print(f"{name:<20} {took:7.2f} s for {TESTS}, {TESTS / took:7.0f} a second")
print(f"calls one by one / tests {one_by_one / side_by_side:.1f}; {memory} MiB at most")
rate = TESTS / side_by_side
print(f"{'ok' if rate > GOAL else 'MISSED'}     tests a second, over {GOAL}: {rate:.0f}")
sys.exit(rate <= GOAL)
