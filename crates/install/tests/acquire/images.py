"""A registry of container images for tests: makes an image with this machine's shell and serves it on the loopback.

images.py [CERTIFICATE KEY]: says in one line of JSON where it is and which digests it has, then serves until it is killed.
The first word of a repository says how it is served: `plain`, `locked` (a token is wanted), `astray` (which somebody else
would give, by http), `wrong` (another manifest), `spoilt` (another layer), `short` (half a layer), `aside` (layers are at the
other port), `inward` (layers are at a private place), `downward` (layers are had by http elsewhere), `closed` (nobody gets a token).
"""
import gzip, hashlib, http.server, io, json, os, platform, re, ssl, subprocess, sys, tarfile, threading, urllib.parse

BLOBS = {}       # digest -> bytes
SEEN = []        # [path, what was shown]
PORTS = {}
TOKEN = "t0ken"


def keep(data):
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    BLOBS[digest] = data
    return digest


def descriptor(kind, data, **more):
    return {"mediaType": kind, "digest": keep(data), "size": len(data), **more}


def layer(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    plain = out.getvalue()
    return plain, gzip.compress(plain, 1, mtime=0)


def shell():
    """The shell of this machine, and what it is linked with."""
    shell = os.path.realpath("/bin/sh")
    said = subprocess.run(["ldd", shell], capture_output=True, text=True).stdout
    paths = re.findall(r"(/\S+)", said)
    read = lambda path: open(os.path.realpath(path), "rb").read()
    return {"bin/sh": read(shell), **{path.lstrip("/"): read(path) for path in paths}}


def manifest(architecture, layers, kind="oci"):
    names = {"oci": ("application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.config.v1+json",
                     "application/vnd.oci.image.layer.v1.tar+gzip"),
             "docker": ("application/vnd.docker.distribution.manifest.v2+json", "application/vnd.docker.container.image.v1+json",
                        "application/vnd.docker.image.rootfs.diff.tar.gzip")}[kind]
    config = {"os": "linux", "architecture": architecture, "config": {"Env": ["PATH=/bin:/opt"], "WorkingDir": "/"},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest() for plain, _ in layers]}}
    document = {"schemaVersion": 2, "mediaType": names[0], "config": descriptor(names[1], json.dumps(config).encode()),
                "layers": [descriptor(names[2], packed) for _, packed in layers]}
    data = json.dumps(document).encode()
    return descriptor(names[0], data, platform={"os": "linux", "architecture": architecture})


def index(manifests):
    kind = "application/vnd.oci.image.index.v1+json"
    return keep(json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": manifests}).encode())


HERE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
GREET = b"#!/bin/sh\nread -r mark < /opt/mark\necho \"hello $1 from $mark\"\n"
LAYERS = [layer(shell()), layer({"opt/greet": GREET, "opt/mark": b"the image\n"})]
OURS = manifest(HERE, LAYERS)
ALIEN = manifest("s390x", [layer({"opt/alien": b""})])
WORLD = {"manifest": OURS["digest"], "docker": manifest(HERE, LAYERS, "docker")["digest"], "index": index([ALIEN, OURS]),
         "alien": index([ALIEN]), "mismatch": ALIEN["digest"], "layer": keep(LAYERS[1][1]), "config": json.loads(BLOBS[OURS["digest"]])["config"]["digest"]}
LIAR = json.loads(BLOBS[OURS["digest"]])
LIAR["layers"][1]["size"] += 1
WORLD["liar"] = keep(json.dumps(LIAR).encode())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, data, status=200, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/seen":
            return self.answer(json.dumps(SEEN).encode())
        shown = self.headers.get("Authorization", "")
        SEEN.append([self.path, shown])
        here = f"http://127.0.0.1:{PORTS['port']}"
        if path.startswith("/token/"):
            asked = urllib.parse.parse_qs(query)
            if path == "/token/closed" or asked.get("scope") != ["repository:locked/greet:pull"] or asked.get("service") != ["images"]:
                return self.answer(b"{}", 401)
            return self.answer(json.dumps({"token": TOKEN, "expires_in": 300}).encode())
        if path.startswith("/store/"):
            # A store is for those who were sent there, and wants to know nothing of them.
            return self.answer(BLOBS[path.removeprefix("/store/")], 400 if shown else 200)
        found = re.fullmatch(r"/v2/((\w+)/greet)/(manifests|blobs)/(sha256:[0-9a-f]{64})", path)
        if not found or found[4] not in BLOBS:
            return self.answer(b"{}", 404)
        repository, how, kind, digest = found.groups()
        data = BLOBS[digest]
        if how in ("locked", "astray", "closed") and shown != f"Bearer {TOKEN}":
            realm = {"locked": f"{here}/token/locked", "closed": f"{here}/token/closed", "astray": "http://127.0.0.1:9/token"}[how]
            return self.answer(b"{}", 401, WWW_Authenticate=f'Bearer realm="{realm}",service="images",scope="repository:{repository}:pull"')
        if kind == "manifests":
            document = json.loads(data)
            if "vnd" not in self.headers.get("Accept", "") or document["mediaType"] not in self.headers["Accept"]:
                return self.answer(b"{}", 404)
            if how == "wrong":
                data += b" "
        elif digest == WORLD["layer"]:
            if how == "spoilt":
                data = data[:-1] + bytes([data[-1] ^ 1])
            if how == "short":
                data = data[:len(data) // 2]
            if how == "aside":
                return self.answer(b"", 307, Location=f"https://localhost:{PORTS['secure']}/store/{digest}")
            if how == "inward":
                return self.answer(b"", 307, Location=f"https://127.0.0.1:{PORTS['secure']}/store/{digest}")
            if how == "downward":
                return self.answer(b"", 307, Location=f"http://127.0.0.1:{PORTS['other']}/store/{digest}")
        self.answer(data)


def serve(name, *files):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    # Who is refused goes away in the middle of it.
    server.handle_error = lambda *_: None
    if files:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    PORTS[name] = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()


serve("port")
serve("other")
if len(sys.argv) > 1:
    serve("secure", *sys.argv[1:3])
print(json.dumps({**PORTS, **WORLD}), flush=True)
threading.Event().wait()
