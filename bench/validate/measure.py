"""Compares `haft validate` with ajv and check-jsonschema, and prints one table.

Started by `run`, in the repository root, once everything is built and fetched.
Rivals take turns within each round, so that a busy machine slows them alike.
A time counts only if the work was done: everybody must also refuse a broken manifest.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path("bench/validate")
CACHE = Path("target/bench")
SCHEMA = str(CACHE / "schema.json")
MANIFEST = HERE / "manifest-18k.json"
HAFT = "target/release/haft"

ROUNDS = 11
HAFT_BATCH = 20  # One run takes a few milliseconds, too little to time by itself.
IN_PROCESS_ROUNDS = 7
AJV_SECONDS = 2
FILES = 10_000
FOLDER_ROUNDS = 3


def main():
    print(f"{MANIFEST.name}, {MANIFEST.stat().st_size} bytes; {versions()}; {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory() as scratch:
        rows = one_file(Path(scratch)) + in_process() + many_files(Path(scratch))
    print_table(rows)
    sys.exit(any(row[-1] == "MISSED" for row in rows))


def one_file(scratch):
    """(a) CPU time of a whole process that judges one manifest."""
    commands = {
        "haft": [HAFT, "validate"],
        "ajv-cli": [
            str(CACHE / "npm/node_modules/.bin/ajv"), "validate", "--spec=draft2020", "--strict=false",
            "--validate-formats=false", "-s", SCHEMA, "-d",
        ],
        "check-jsonschema": [str(CACHE / "venv/bin/check-jsonschema"), "--schemafile", SCHEMA],
    }
    broken = write_broken(scratch / "broken.json")
    for command in commands.values():
        must_refuse([*command, str(broken)])

    samples = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            runs = HAFT_BATCH if name == "haft" else 1
            total = sum(cpu_of([*command, str(MANIFEST)]) for _ in range(runs))
            samples[name].append(total / runs * 1000)
    cpu = {name: statistics.median(values) for name, values in samples.items()}
    return [
        faster(f"one process, CPU, vs {name}", cpu[name], cpu["haft"], "ms", 50)
        for name in commands
        if name != "haft"
    ]


def in_process():
    """(b) Time for one manifest, from text to verdict, with schema and program already loaded."""
    ajv_command = ["node", str(HERE / "ajv.mjs"), SCHEMA, str(MANIFEST), str(AJV_SECONDS)]
    our_command = ["cargo", "bench", "--quiet", "-p", "manifest", "--bench", "validate", "--", "--json"]
    ajv, structure, everything = [], [], []
    for _ in range(IN_PROCESS_ROUNDS):
        ajv.append(json_line(ajv_command)["micros"])
        ours = json_line(our_command)
        if ours["bytes"] != MANIFEST.stat().st_size:
            sys.exit(f"our bench read {ours['bytes']} bytes: not {MANIFEST.name}")
        structure.append(ours["parse_structure_micros"])
        everything.append(ours["everything_micros"])
    ajv, structure, everything = map(statistics.median, (ajv, structure, everything))
    return [
        faster("in process, parse + structure, vs ajv", ajv, structure, "µs", 1.5),
        faster("in process, everything, vs ajv", ajv, everything, "µs", 0.5),
    ]


def many_files(scratch):
    """(c) One run over a folder of many manifests: does it use the cores and stay small?"""
    folder = scratch / "many"
    folder.mkdir()
    text = MANIFEST.read_text()
    for number in range(FILES):
        own = text.replace('"id": "post-office"', f'"id": "post-office-{number:05}"', 1)
        (folder / f"post-office-{number:05}.json").write_text(own)

    command = [HAFT, "validate", str(folder)]
    runs = sorted((measure(command, scratch) for _ in range(FOLDER_ROUNDS)), key=lambda run: run["wall"])
    median = runs[FOLDER_ROUNDS // 2]
    write_broken(folder / f"post-office-{FILES // 2:05}.json")
    must_refuse(command)

    cores = median["cpu"] / median["wall"]
    peak = max(run["peak_mb"] for run in runs)
    what = f"{FILES:,} files"
    return [
        (f"{what}, wall", "", f"{median['wall']:.2f} s", "", "", ""),
        (f"{what}, CPU", "", f"{median['cpu']:.2f} s", "", "", ""),
        (f"{what}, cores used", "", f"{cores:.2f}", "", "> 1.5", verdict(cores > 1.5)),
        (f"{what}, peak memory", "", f"{peak:.0f} MB", "", "< 200 MB", verdict(peak < 200)),
    ]


def faster(what, baseline, ours, unit, goal):
    """A row that asks us to be `goal` times as fast as the baseline."""
    ratio = baseline / ours
    return what, f"{baseline:.1f} {unit}", f"{ours:.1f} {unit}", f"{ratio:.2f}x", f">= {goal}x", verdict(ratio >= goal)


def verdict(met):
    return "ok" if met else "MISSED"


def print_table(rows):
    table = [("what", "baseline", "ours", "ratio", "goal", ""), *rows]
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:5], widths[1:5])), row[5]]
        print("  ".join(cells).rstrip())


def spawn(command):
    """Runs silently to the end; answers the exit code and the resources it and its children took."""
    silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    _, status, usage = os.wait4(os.posix_spawn(command[0], command, os.environ, file_actions=silent), 0)
    return os.waitstatus_to_exitcode(status), usage


def usage_of(command):
    code, usage = spawn(command)
    if code != 0:
        sys.exit(f"exit {code} from: {' '.join(command)}")
    return usage


def cpu_of(command):
    usage = usage_of(command)
    return usage.ru_utime + usage.ru_stime


def measure(command, scratch):
    """Wall seconds, CPU seconds and peak memory of one run."""
    # A process starts with the peak of whoever spawned it. GNU time is tiny, Python a dozen MB.
    report = scratch / "peak"
    timer = ["/usr/bin/time", "-f", "%M", "-o", str(report)] if os.path.exists("/usr/bin/time") else []
    start = time.perf_counter()
    usage = usage_of([*timer, *command])
    wall = time.perf_counter() - start
    peak_kib = int(report.read_text()) if timer else usage.ru_maxrss
    return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak_mb": peak_kib * 1024 / 1e6}


def must_refuse(command):
    if spawn(command)[0] == 0:
        sys.exit(f"accepts a broken manifest: {' '.join(command)}")


def write_broken(path):
    manifest = json.loads(MANIFEST.read_text())
    del manifest["actions"][-1]["side_effects"]
    path.write_text(json.dumps(manifest, indent=2))
    return path


def json_line(command):
    """The one JSON line of a program that may print other things around it."""
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return json.loads(next(line for line in reversed(lines) if line.startswith("{")))


def versions():
    node = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    packages = [
        f"{name} {json.loads((CACHE / 'npm/node_modules' / name / 'package.json').read_text())['version']}"
        for name in ("ajv", "ajv-cli")
    ]
    python = subprocess.run(
        [str(CACHE / "venv/bin/check-jsonschema"), "--version"], check=True, capture_output=True, text=True
    ).stdout.strip().replace(", version", "")
    return ", ".join([f"node {node}", *packages, python])


if __name__ == "__main__":
    main()
