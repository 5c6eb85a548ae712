"""A small site for real clients: files, a git repository, a Python index and an npm registry.

Usage: server.py FOLDER [HOST]. Expects `cert.pem` and `key.pem` there, prints the ports of HTTP
and HTTPS, and ends when its input does. HOST is what its clients call it.
"""

import base64
import hashlib
import http.server
import io
import json
import os
import ssl
import subprocess
import sys
import tarfile
import threading
import zipfile

HOST = sys.argv[2] if len(sys.argv) > 2 else "index.ok.test"
folder = sys.argv[1]
root = os.path.join(folder, "www")


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=root)

    def log_message(self, *_):
        pass

    def do_POST(self):
        if self.path.startswith("/smart/"):
            return self.git()
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, f"{len(body)} {hashlib.sha256(body).hexdigest()}".encode())

    def do_GET(self):
        if self.path.startswith("/smart/"):
            return self.git()
        if self.path.startswith("/redirect/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/redirect/"))
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if self.path == "/headers":
            return self.answer(200, json.dumps(list(self.headers.items())).encode())
        super().do_GET()

    def answer(self, status, body, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def git(self):
        path, _, query = self.path.removeprefix("/smart").partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "CONTENT_LENGTH": str(len(body)),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, capture_output=True, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(fields.get("Status", "200").split()[0])
        self.answer(status, content, fields["Content-Type"])


def write(path, content):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def make_git():
    work = os.path.join(folder, "work")
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments, cwd=folder):
        subprocess.run(["git", *arguments], cwd=cwd, env=environment, check=True, capture_output=True)

    git("init", "-q", work)
    with open(os.path.join(work, "README"), "w") as file:
        file.write("cloned\n")
    git("add", "README", cwd=work)
    git("-c", "user.name=a", "-c", "user.email=a@b.test", "commit", "-q", "-m", "one", cwd=work)
    git("clone", "-q", "--bare", work, os.path.join(root, "repo.git"))
    git("update-server-info", cwd=os.path.join(root, "repo.git"))


def make_wheel():
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("demo_tool.py", "")
        about = "demo_tool-1.0.dist-info/"
        archive.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: demo-tool\nVersion: 1.0\n")
        archive.writestr(about + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(about + "RECORD", "")
    name = "demo_tool-1.0-py3-none-any.whl"
    write(f"files/{name}", wheel.getvalue())
    write("simple/demo-tool/index.html", f'<a href="/files/{name}">{name}</a>'.encode())


def make_npm(origin):
    tarball = io.BytesIO()
    with tarfile.open(fileobj=tarball, mode="w:gz") as archive:
        for name, text in [
            ("package.json", '{"name": "demo-tool", "version": "1.0.0"}'),
            ("index.js", "module.exports = 1;"),
        ]:
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    content = tarball.getvalue()
    write("files/demo-tool-1.0.0.tgz", content)
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    version = {
        "name": "demo-tool",
        "version": "1.0.0",
        "dist": {"tarball": f"{origin}/files/demo-tool-1.0.0.tgz", "integrity": f"sha512-{digest}"},
    }
    document = {"name": "demo-tool", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    write("npm/demo-tool", json.dumps(document).encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


plain, secure = Server(("127.0.0.1", 0), Handler), Server(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem"))
secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
write("hello.txt", b"hello\n")
make_git()
make_wheel()
make_npm(f"https://{HOST}:{secure.server_port}")
for server in (plain, secure):
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(plain.server_port, secure.server_port, flush=True)
sys.stdin.read()
