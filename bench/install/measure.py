"""Measures installs against npm and uv, in one run. measure.py HAFT UV"""
import base64, hashlib, io, json, os, shutil, statistics, subprocess, sys, tarfile, tempfile, time, zipfile

HAFT, UV = sys.argv[1:3]
MANY, LISTED, ROUNDS = 200, 1000, 15
GOAL_INSTALL, GOAL_SYNC, GOAL_LIST = 30.0, 3000.0, 20.0
SCRATCH = tempfile.mkdtemp(prefix="haft-bench-")
ENV = {key: value for key, value in os.environ.items() if not key.startswith(("HAFT_", "REGISTRY_"))}


def run(words, cwd=SCRATCH, **env):
    done = subprocess.run(words, cwd=cwd, env={**ENV, **env}, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{words} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def timed(words, **more):
    began = time.perf_counter()
    run(words, **more)
    return (time.perf_counter() - began) * 1000


def path(*parts):
    return os.path.join(SCRATCH, *parts)


def write(name, text):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "w" if isinstance(text, str) else "wb") as file:
        file.write(text)


def package(number):
    """A trivial tool in a folder of its own: a manifest and a script."""
    name = f"sources/tool{number}"
    manifest = {
        "toolId": f"bench.tool{number}", "name": f"Tool {number}", "version": "1.0.0",
        "description": "Says what it is given.", "capabilities": ["bench"],
        "implementations": [{
            "id": "python", "language": "python", "runtime": "python", "platforms": ["linux-x64", "linux-arm64"],
            "endpoint": {"type": "local", "command": "python3 ./say.py"},
        }],
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"}, "tests": [],
    }
    write(f"{name}/manifest.json", json.dumps(manifest))
    write(f"{name}/say.py", f"import sys\nprint(sys.stdin.read())  # {number}\n")
    return path(name)


def prepare_haft():
    """A registry on the loopback with all packages, and a home that has fetched each of them once."""
    server = subprocess.Popen(
        [HAFT, "--home", path("served"), "registry", "serve", "--listen", "127.0.0.1:0", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENV)
    said = ""
    while "}" not in said:
        said += server.stdout.readline()
    url = json.loads(said)["url"]
    token = run([HAFT, "--home", path("served"), "registry", "token", "new", "--namespace", "*", "-q"]).strip()
    home = path("home")
    run([HAFT, "--home", home, "registry", "add", "bench", url])
    write("home/policy.toml", '[trust]\nallow = ["local", "verified", "community"]\n')
    for number in range(MANY):
        folder = package(number)
        run([HAFT, "--home", home, "publish", folder, "--no-sign", "--no-test", "-q"], HAFT_TOKEN=token, REGISTRY_BASE_URL=url)
    for number in range(MANY):
        run([HAFT, "--home", home, "install", f"bench.tool{number}", "--yes", "-q"])
    run([HAFT, "--home", home, "lock", "-o", path("haft.lock")])
    return server, home


def empty(home):
    """The home as it is after everything was fetched and nothing installed."""
    run([HAFT, "--home", home, "reset", "--yes", "-q"])


def wheels():
    os.makedirs(path("wheels"))
    lines = []
    for number in range(MANY):
        name, info = f"bench_tool{number}", f"bench_tool{number}-1.0.0.dist-info"
        entries = {
            f"{name}.py": "def say(text):\n    return text\n",
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        entries[f"{info}/RECORD"] = "".join(f"{one},,\n" for one in [*entries, f"{info}/RECORD"])
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for inside, text in entries.items():
                archive.writestr(zipfile.ZipInfo(inside), text)
        write(f"wheels/{name}-1.0.0-py3-none-any.whl", out.getvalue())
        lines.append(f"{name}==1.0.0 --hash=sha256:{hashlib.sha256(out.getvalue()).hexdigest()}\n")
    write("requirements.txt", "".join(lines))


def tarballs():
    packages, wanted = {}, {}
    for number in range(MANY):
        name = f"bench-tool{number}"
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            for inside, text in {"package/package.json": json.dumps({"name": name, "version": "1.0.0", "main": "say.js"}),
                                 "package/say.js": "module.exports = text => text\n"}.items():
                entry = tarfile.TarInfo(inside)
                entry.size, entry.mode = len(text), 0o644
                archive.addfile(entry, io.BytesIO(text.encode()))
        data = out.getvalue()
        write(f"node/tarballs/{name}.tgz", data)
        wanted[name] = f"file:tarballs/{name}.tgz"
        digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
        packages[f"node_modules/{name}"] = {"version": "1.0.0", "resolved": wanted[name], "integrity": f"sha512-{digest}"}
    head = {"name": "bench", "version": "1.0.0", "dependencies": wanted}
    write("node/package.json", json.dumps(head))
    write("node/package-lock.json", json.dumps({"name": "bench", "version": "1.0.0", "lockfileVersion": 3, "requires": True,
                                                "packages": {"": head, **packages}}))


def main():
    server, home = prepare_haft()
    wheels()
    tarballs()
    npm = ["npm", "ci", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    python = path("venv")
    run([UV, "venv", "--quiet", python])
    uv = [UV, "pip", "sync", "--quiet", "--offline", "--no-index", "--find-links", path("wheels"), "--require-hashes",
          "--python", python, path("requirements.txt")]
    haft = [HAFT, "--home", home, "sync", "--locked", path("haft.lock"), "--yes", "--offline", "-q"]
    one = [HAFT, "--home", home, "install", "bench.tool0", "--yes", "--offline", "-q"]

    def clear_npm():
        shutil.rmtree(path("node/node_modules"), ignore_errors=True)

    def clear_uv():
        shutil.rmtree(python)
        run([UV, "venv", "--quiet", python])

    rounds = {"haft": [], "npm": [], "uv": [], "one": [], "nothing": []}
    for turn in range(ROUNDS // 3 + 1):
        empty(home)
        clear_npm()
        clear_uv()
        times = {"haft": timed(haft), "npm": timed(npm, cwd=path("node")), "uv": timed(uv)}
        # The first fills the caches of the others.
        if turn:
            for name, took in times.items():
                rounds[name].append(took)
    listed = json.loads(run([HAFT, "--home", home, "list", "--json"]))["packages"]
    assert len(listed) == MANY, len(listed)
    assert len([one for one in os.listdir(path("node/node_modules")) if one.startswith("bench-")]) == MANY
    for turn in range(ROUNDS):
        run([HAFT, "--home", home, "remove", "bench.tool0", "-q"])
        rounds["one"].append(timed(one))
        rounds["nothing"].append(timed([HAFT, "--version"]))
    for number in range(MANY, LISTED):
        folder = package(number)
    # A folder of packages by one lock: what is listed does not depend on how it came there.
    grow(home)
    listing = [timed([HAFT, "--home", home, "list", "--json"]) for _ in range(ROUNDS * 2)]
    listed = json.loads(run([HAFT, "--home", home, "list", "--json"]))["packages"]
    assert len(listed) == LISTED, len(listed)
    server.kill()

    middle = {name: statistics.median(times) for name, times in rounds.items()}
    rows = [
        ("install of one, from what is kept", middle["one"], GOAL_INSTALL),
        (f"{MANY} by `sync --locked`", middle["haft"], GOAL_SYNC),
        (f"`list` of {LISTED}", statistics.median(listing), GOAL_LIST),
    ]
    print(f"a process that does nothing: {middle['nothing']:.1f} ms\n")
    print("| what | Haft | goal |\n|---|---|---|")
    for what, took, goal in rows:
        print(f"| {what} | {took:.1f} ms | < {goal:.0f} ms |")
    print(f"\n| {MANY} trivial packages, nothing fetched | time | ratio to Haft |\n|---|---|---|")
    for what, name in [("`haft sync --locked`", "haft"), ("`npm ci`", "npm"), ("`uv pip sync`", "uv")]:
        print(f"| {what} | {middle[name]:.0f} ms | {middle[name] / middle['haft']:.2f}x |")
    missed = [what for what, took, goal in rows if took >= goal]
    for what in missed:
        print(f"missed: {what}", file=sys.stderr)
    sys.exit(1 if missed else 0)


def grow(home):
    for number in range(MANY, LISTED, 40):
        folders = [path(f"sources/tool{one}") for one in range(number, min(number + 40, LISTED))]
        for folder in folders:
            run([HAFT, "--home", home, "install", folder, "--yes", "-q"])


try:
    main()
finally:
    shutil.rmtree(SCRATCH, ignore_errors=True)
