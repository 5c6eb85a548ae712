"""Indexes and repositories for tests: makes packages in a folder and serves them on the loopback.

world.py FOLDER [CERTIFICATE KEY]: says its port, then serves until it is killed.
"""
import base64, hashlib, http.server, io, json, os, ssl, subprocess, sys, tarfile, threading, zipfile

FOLDER = sys.argv[1]
FILES = {}       # path -> bytes
SIMPLE = {}      # name -> [(file, with its digest)]
NPM = {}         # name -> description
TAMPERED = {}    # path -> who is lied to: a word of the user agent
SEEN = []
PORT = 0


def wheel(name, version, files, needs=(), commands=()):
    plain = name.replace("-", "_")
    info = f"{plain}-{version}.dist-info"
    meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {one}\n" for one in needs)
    entries = dict(files)
    entries[f"{info}/METADATA"] = meta
    entries[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: world\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if commands:
        entries[f"{info}/entry_points.txt"] = "[console_scripts]\n" + "".join(f"{one}\n" for one in commands)
    record = "".join(f"{path},,\n" for path in [*entries, f"{info}/RECORD"])
    entries[f"{info}/RECORD"] = record
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in entries.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return f"{plain}-{version}-py3-none-any.whl", out.getvalue()


def tar(files, mode="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text.encode()), 0o755 if "/bin/" in path else 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def offer(name, file, data, hashed=True):
    FILES[f"/files/{file}"] = data
    SIMPLE.setdefault(name, []).append((file, hashed))


def offer_npm(name, version, files, **more):
    description = {"name": name, "version": version, **more}
    data = tar({"package/package.json": json.dumps(description), **{f"package/{path}": text for path, text in files.items()}})
    path = f"/tarballs/{name.replace('/', '-')}-{version}.tgz"
    FILES[path] = data
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
    description["dist"] = {"tarball": f"http://127.0.0.1:{PORT}{path}", "integrity": f"sha512-{digest}"}
    package = NPM.setdefault(name, {"name": name, "versions": {}})
    package["dist-tags"] = {"latest": version}
    package["versions"][version] = description


BACKEND = """
import os, urllib.request, zipfile
urllib.request.urlopen('http://127.0.0.1:PORT/ran/NAME').read()
if os.path.exists(os.path.join(os.environ['TMPDIR'], '..', '..', 'cache')):
    urllib.request.urlopen('http://127.0.0.1:PORT/saw/cache').read()
for name in ('node_modules', 'files', 'bin'):
    try:
        os.symlink('../victim', os.path.join(os.path.dirname(os.environ['TMPDIR']), name))
        os.symlink('../../victim', os.path.join(os.environ['TMPDIR'], name))
    except OSError:
        pass
def get_requires_for_build_wheel(config_settings=None): return []
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = 'NAME-1.0-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(folder, name), 'w') as archive:
        archive.writestr('NAME.py', 'word = 1')
        archive.writestr('NAME-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: NAME\\nVersion: 1.0\\n')
        archive.writestr('NAME-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
        archive.writestr('NAME-1.0.dist-info/RECORD', '')
    return name
"""


def make_packages():
    hello = "import hello_dep\ndef main():\n    print('hello', hello_dep.word)\n"
    offer("hello-tool", *wheel("hello-tool", "1.0", {"hello_tool.py": hello}, ["hello-dep>=1"], ["hello-tool = hello_tool:main"]))
    offer("hello-dep", *wheel("hello-dep", "1.5", {"hello_dep.py": "word = 'old'\n"}))
    offer("hello-dep", *wheel("hello-dep", "2.0", {"hello_dep.py": "word = 'world'\n"}))
    offer("bare", *wheel("bare", "1.0", {"bare.py": "word = 'bare'\n"}), hashed=False)
    source = BACKEND.replace("PORT", str(PORT)).replace("NAME", "sourced")
    project = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    files = {"PKG-INFO": "Metadata-Version: 2.1\nName: sourced\nVersion: 1.0\n", "pyproject.toml": project, "backend.py": source}
    offer("sourced", "sourced-1.0.tar.gz", tar({f"sourced-1.0/{path}": text for path, text in files.items()}))
    script = f"node -e \"require('http').get('http://127.0.0.1:{PORT}/ran/hello-node')\""
    command = "#!/usr/bin/env node\nconsole.log('hello ' + require('hello-leaf'))\n"
    offer_npm("hello-node", "1.0.0", {"cli.js": command}, bin={"hello-node": "cli.js"},
              dependencies={"hello-leaf": "^1.1.0"}, scripts={"preinstall": script, "install": script, "postinstall": script})
    offer_npm("hello-leaf", "1.0.0", {"index.js": "module.exports = 'old'\n"})
    offer_npm("hello-leaf", "1.1.0", {"index.js": "module.exports = 'leaf'\n"})
    offer_npm("@acme/two", "2.0.0", {"index.js": "module.exports = require('hello-leaf')\n"}, dependencies={"hello-leaf": "1.0.0"})
    offer_npm("@acme/three", "3.0.0", {"index.js": "module.exports = require('hello-leaf')\n"}, dependencies={"hello-leaf": "1.0.0"})
    offer_npm("wanders", "1.0.0", {}, dependencies={"hello-leaf": "http://elsewhere.test/hello-leaf-1.0.0.tgz"})
    FILES["/one/tool"] = b"#!/bin/sh\necho one\n"
    FILES["/one/tool.zip"] = b"PK\x03\x04 not really"


def make_repository():
    work, bare = os.path.join(FOLDER, "work"), os.path.join(FOLDER, "git", "tools.git")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@a.test", f"GIT_{who}_DATE": "2024-01-01T00:00:00Z"}
    def git(*words, where=work):
        return subprocess.run(["git", *words], cwd=where, env=env, check=True, capture_output=True, text=True).stdout.strip()
    os.makedirs(os.path.join(work, "skills", "one"))
    git("init", "--quiet", "--initial-branch=main")
    def write(path, text):
        os.makedirs(os.path.dirname(os.path.join(work, path)) or work, exist_ok=True)
        with open(os.path.join(work, path), "w") as file:
            file.write(text)
    write("README.md", "first\n")
    write("skills/one/SKILL.md", "# One\n")
    write("tools/run.sh", "#!/bin/sh\necho run\n")
    os.chmod(os.path.join(work, "tools/run.sh"), 0o755)
    git("add", "."), git("commit", "--quiet", "-m", "first")
    first = git("rev-parse", "HEAD")
    git("tag", "-a", "v1", "-m", "v1")
    os.symlink("tools", os.path.join(work, "linked"))
    os.makedirs(os.path.join(work, "inside"))
    os.symlink("/etc/passwd", os.path.join(work, "inside", "passwd"))
    write("tools/run.sh", "#!/bin/sh\necho second\n")
    git("add", "."), git("commit", "--quiet", "-m", "second")
    second = git("rev-parse", "HEAD")
    os.makedirs(os.path.dirname(bare))
    git("clone", "--quiet", "--bare", work, bare, where=FOLDER)
    FILES["/commits"] = json.dumps([first, second]).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, data, status=200, kind="application/octet-stream", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/seen":
            return self.answer(json.dumps(SEEN).encode())
        SEEN.append(path)
        if path.startswith("/locked/"):
            if self.headers.get("Authorization") not in ("Basic bmFtZTpzM2NyZXQ=", "Bearer s3cret"):
                return self.answer(b"{}", 401)
            path = path.removeprefix("/locked")
        parts = path.strip("/").split("/")
        if parts[0] == "silent":
            return threading.Event().wait()
        if path.startswith("/tamper/"):
            TAMPERED["/" + "/".join(parts[2:])] = parts[1]
            return self.answer(b"ok")
        if parts[0] in ("ran", "saw"):
            return self.answer(b"ok")
        if path == "/redirect":
            return self.answer(b"", 302, Location=query)
        if parts[0] == "git":
            return self.git(query)
        if parts[0] == "simple" and len(parts) == 2 and parts[1] in SIMPLE:
            digest = lambda file: hashlib.sha256(FILES[f"/files/{file}"]).hexdigest()
            links = [f'<a href="../../files/{file}{"#sha256=" + digest(file) if hashed else ""}">{file}</a>' for file, hashed in SIMPLE[parts[1]]]
            return self.answer(("<!DOCTYPE html><html><body>" + "".join(links) + "</body></html>").encode(), kind="text/html")
        if parts[0] == "npm":
            name = "/".join(parts[1:]).replace("%2f", "/").replace("%2F", "/")
            if name in NPM:
                return self.answer(json.dumps(NPM[name]).encode(), kind="application/json")
        if path in FILES:
            data = FILES[path]
            if TAMPERED.get(path, "\0") in self.headers.get("User-Agent", ""):
                data = data[:-1] + bytes([data[-1] ^ 1])
            return self.answer(data)
        self.answer(b"{}", 404)

    def do_POST(self):
        SEEN.append(self.path)
        path, _, query = self.path.partition("?")
        if path.startswith("/git/"):
            return self.git(query)
        self.answer(b"{}", 404)

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def git(self, query):
        data = self.body() if self.command == "POST" else b""
        env = {**os.environ, "GIT_PROJECT_ROOT": os.path.join(FOLDER, "git"), "GIT_HTTP_EXPORT_ALL": "1",
               "PATH_INFO": self.path.partition("?")[0].removeprefix("/git"), "QUERY_STRING": query,
               "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "CONTENT_LENGTH": str(len(data)), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_GLOBAL": "/dev/null",
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        said = subprocess.run(["git", "http-backend"], input=data, env=env, capture_output=True).stdout
        head, _, rest = said.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.answer(rest, int(headers.pop("Status", "200").split()[0]), headers.pop("Content-Type", "text/plain"))


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
PORT = server.server_address[1]
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
make_packages()
if len(sys.argv) == 2:
    make_repository()
print(PORT, flush=True)
server.serve_forever()
