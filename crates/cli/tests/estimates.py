"""Estimates for tests, by https on the loopback: each one cent higher than the one before.

estimates.py CERTIFICATE KEY: says its port, then serves until it is killed.
"""
import http.server, json, ssl, sys

SEEN = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, data, status=200, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/seen":
            return self.answer(json.dumps(SEEN).encode())
        SEEN.append([self.path, sorted(name.lower() for name in self.headers)])
        if self.path == "/estimate":
            basis = "100 calls a day\x1b[31m"
            return self.answer(json.dumps({"monthly_estimate_cents": 1204 + len(SEEN), "basis": basis}).encode())
        if self.path == "/away":
            return self.answer(b"", 302, Location="/estimate")
        if self.path == "/large":
            return self.answer(b'{"monthly_estimate_cents":1,"basis":"' + b"x" * (1 << 17) + b'"}')
        if self.path == "/odd":
            return self.answer(b'{"monthly_estimate_cents":"much"}')
        self.answer(b"{}", 500)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
# Who is refused goes away in the middle of it.
server.handle_error = lambda *_: None
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
