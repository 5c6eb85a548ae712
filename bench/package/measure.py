"""Compares `haft pack` and `haft unpack` with zip, unzip and mcpb, and prints one table.

Started by `run`, in the repository root, once everything is built and fetched.
Rivals take turns within each round, so that a busy machine slows them alike.
A time counts only if the work was done: every archive holds the same files.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

HAFT = str(Path("target/release/haft").resolve())
MCPB = str(Path("target/bench/mcpb/node_modules/.bin/mcpb").resolve())

FILES = 200
BYTES = 20_000_000
ROUNDS = 9
SLOW_ROUNDS = 3  # mcpb takes seconds; three are enough.


def main():
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        folder = scratch / "folder"
        total = make_folder(folder)
        print(f"{FILES} files, {total:,} bytes; {versions()}; {os.cpu_count()} cores\n")
        rows = packing(folder, scratch) + unpacking(folder, scratch)
    print_table(rows)
    sys.exit(any(row[-1] == "MISSED" for row in rows))


def packing(folder, scratch):
    """Wall time from a folder to an archive, and how large the archive is."""
    archives = {"haft": scratch / "haft.mcpkg", "zip": scratch / "zip.zip", "mcpb": scratch / "mcpb.mcpb"}
    commands = {
        "haft": [HAFT, "pack", str(folder), "-o", str(archives["haft"]), "--quiet"],
        "zip": ["zip", "-qr", str(archives["zip"]), "."],
        "mcpb": [MCPB, "pack", str(folder), str(archives["mcpb"])],
    }
    walls = alternate(commands, folder, before=lambda name: archives[name].unlink(missing_ok=True))
    contents = {name: members(path) for name, path in archives.items()}
    if not contents["haft"] == contents["zip"] == contents["mcpb"]:
        sys.exit("the archives hold different files")
    sizes = {name: path.stat().st_size for name, path in archives.items()}
    growth = sizes["haft"] / sizes["zip"] - 1
    return [
        faster("pack, wall, vs zip -r", walls["zip"], walls["haft"], 3),
        (
            "pack, size, vs zip -r", f"{sizes['zip']:,} B", f"{sizes['haft']:,} B", f"{growth:+.2%}",
            "<= +2%", verdict(growth <= 0.02),
        ),
        faster("pack, wall, vs mcpb pack", walls["mcpb"], walls["haft"], 5),
    ]


def unpacking(folder, scratch):
    """Wall time from an archive to a folder; the final sync is left out, as the others have none."""
    archive = scratch / "haft.mcpkg"
    bundle = scratch / "haft.mcpb"
    shutil.copy(archive, bundle)
    targets = {name: scratch / f"out-{name}" for name in ("haft", "unzip", "mcpb", "haft, synced")}
    commands = {
        "haft": [HAFT, "unpack", str(archive), "-o", str(targets["haft"]), "--no-sync", "--quiet"],
        "unzip": ["unzip", "-qq", str(archive), "-d", str(targets["unzip"])],
        "mcpb": [MCPB, "unpack", str(bundle), str(targets["mcpb"])],
        "haft, synced": [HAFT, "unpack", str(archive), "-o", str(targets["haft, synced"]), "--quiet"],
    }
    walls = alternate(commands, folder, before=lambda name: shutil.rmtree(targets[name], ignore_errors=True))
    for target in targets.values():
        if subprocess.run(["diff", "-rq", str(folder), str(target)], check=False).returncode != 0:
            sys.exit(f"{target.name} differs from what was packed")
    return [
        faster("unpack, wall, vs unzip", walls["unzip"], walls["haft"], 1),
        faster("unpack, wall, vs mcpb unpack", walls["mcpb"], walls["haft"], 3),
        ("unpack with the final sync, wall", "", f"{walls['haft, synced'] * 1000:.0f} ms", "", "", ""),
    ]


def alternate(commands, folder, before):
    """The median wall time of each command, run in turns."""
    samples = {name: [] for name in commands}
    for number in range(ROUNDS):
        for name, command in commands.items():
            if name == "mcpb" and number >= SLOW_ROUNDS:
                continue
            before(name)
            start = time.perf_counter()
            ran = subprocess.run(command, cwd=folder, capture_output=True, check=False)
            samples[name].append(time.perf_counter() - start)
            if ran.returncode != 0:
                sys.exit(f"exit {ran.returncode} from: {' '.join(command)}\n{ran.stderr.decode()}")
    return {name: statistics.median(values) for name, values in samples.items()}


def members(path):
    """The files of an archive and their checksums, folders left out."""
    with zipfile.ZipFile(path) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist() if not entry.is_dir()}


def make_folder(folder):
    """A package of a usual mix: program text, JSON, tables of numbers, and data that is dense already."""
    draw = random.Random(20)
    words = ["".join(draw.choices("etaoinshrdlucmfwypvbgkjqxz", k=draw.randint(2, 9))) for _ in range(4000)]
    makers = [program, program, program, documents, numbers, program, program, documents, records, dense]
    manifest = json.dumps({
        "manifest_version": "0.3", "name": "bench", "version": "1.0.0", "description": "A package to measure with.",
        "author": {"name": "The Haft authors"},
        "server": {
            "type": "node", "entry_point": "src/0/file-0.js",
            "mcp_config": {"command": "node", "args": ["${__dirname}/src/0/file-0.js"]},
        },
    }, indent=2).encode()
    write(folder / "manifest.json", manifest)
    total = len(manifest)
    sizes = [draw.randint(10_000, 190_000) for _ in range(FILES - 1)]
    scale = (BYTES - total) / sum(sizes)
    for number, size in enumerate(sizes):
        content = makers[number % len(makers)](draw, words, int(size * scale))
        kind = ["js", "py", "md", "json", "csv", "js", "py", "json", "bin", "png"][number % len(makers)]
        write(folder / ["src", "lib", "data", "assets"][number % 4] / str(number // 20) / f"file-{number}.{kind}", content)
        total += len(content)
    return total


def program(draw, words, size):
    lines, made = [], 0
    while made < size:
        name, call = draw.choice(words), draw.choice(words)
        line = draw.choice([
            f"    const {name} = await {call}({draw.choice(words)}, {draw.randint(0, 99)});\n",
            f"    if ({name}.{call} !== undefined) {{\n",
            f"      return this.{name}.{call}('{draw.choice(words)} {draw.choice(words)}');\n",
            f"    // {' '.join(draw.choices(words, k=draw.randint(4, 12)))}\n",
            "    }\n\n",
            f"  async {name}({call}, {draw.choice(words)}) {{\n",
        ])
        lines.append(line)
        made += len(line)
    return "".join(lines).encode()[:size]


def documents(draw, words, size):
    items, made = [], 0
    while made < size:
        item = json.dumps({
            "id": draw.randint(0, 10**9), "name": draw.choice(words), "tags": draw.choices(words, k=3),
            "price": round(draw.random() * 100, 2), "text": " ".join(draw.choices(words, k=8)),
        })
        items.append(item)
        made += len(item) + 2
    return ("[" + ",\n".join(items) + "]").encode()[:size]


def numbers(draw, _words, size):
    lines, made = [], 0
    while made < size:
        line = ",".join(f"{draw.gauss(50, 12):.4f}" for _ in range(8)) + "\n"
        lines.append(line)
        made += len(line)
    return "".join(lines).encode()[:size]


def records(draw, words, size):
    parts, made = [], 0
    while made < size:
        part = draw.randbytes(12) + bytes(draw.randint(0, 24)) + draw.choice(words).encode()
        parts.append(part)
        made += len(part)
    return b"".join(parts)[:size]


def dense(draw, _words, size):
    return draw.randbytes(size)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def faster(what, baseline, ours, goal):
    """A row that asks us to be `goal` times as fast as the baseline."""
    ratio = baseline / ours
    return what, f"{baseline * 1000:.0f} ms", f"{ours * 1000:.0f} ms", f"{ratio:.2f}x", f">= {goal}x", verdict(ratio >= goal)


def verdict(met):
    return "ok" if met else "MISSED"


def versions():
    first = lambda command: subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    zip_version = next((line.split(" (")[0] for line in first(["zip", "-v"]) if line.startswith("This is Zip")), "zip")
    return f"{first([HAFT, '--version'])[0]}, {zip_version.removeprefix('This is ')}, mcpb {first([MCPB, '--version'])[0]}"


def print_table(rows):
    table = [("what", "baseline", "ours", "ratio", "goal", ""), *rows]
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:5], widths[1:5])), row[5]]
        print("  ".join(cells).rstrip())


main()
