"""A small API for the tests of HTTP tools: echoes, failures of every kind, and a token endpoint.

Prints its port, and ends when its input does.
"""

import base64
import gzip
import http.server
import json
import socket
import struct
import sys
import threading
import time
import urllib.parse

counts = {}
tokens = {}
lock = threading.Lock()


def count(key):
    with lock:
        counts[key] = counts.get(key, 0) + 1
        return counts[key]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="application/json", headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def handle_any(self):
        url = urllib.parse.urlsplit(self.path)
        pairs = urllib.parse.parse_qsl(url.query, keep_blank_values=True)
        query = dict(pairs)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = url.path.strip("/").split("/")
        match parts[0]:
            case "echo":
                self.answer(200, {
                    "method": self.command,
                    "path": url.path,
                    "query": pairs,
                    "headers": {name.lower(): value for name, value in self.headers.items()},
                    "body": json.loads(body) if body else None,
                })
            case "count":
                self.answer(200, {"count": counts.get(query["key"], 0)})
            case "status":
                error = {"error": {"code": "no_such_zone", "message": "there is no such zone",
                                   "details": {"zone": "x"}}}
                self.answer(int(parts[1]), error)
            case "empty":
                self.answer(204)
            case "nothing":
                self.answer(200)
            case "text":
                self.answer(200, "plain wörds".encode(), "text/plain; charset=utf-8")
            case "bytes":
                self.answer(200, bytes(range(256)), "image/x-demo")
            case "records":
                self.answer(200, b'{"n": 1}\n\n{"n": 2}\n', "application/x-ndjson")
            case "nonsense":
                self.answer(200, b"<html>no</html>", "text/html")
            case "packed":
                self.answer(200, gzip.compress(b"{}"), headers=[("Content-Encoding", "gzip")])
            case "large":
                self.answer(200, b'"' + b"x" * (17 << 20) + b'"')
            case "slow":
                time.sleep(float(query.get("seconds", 5)))
                self.answer(200, {})
            case "elsewhere":
                self.answer(int(query.get("status", 302)), headers=[("Location", query["to"])])
            case "given":
                # What is told here is counted, so that a test can ask who was told what.
                count(f"{self.command} {self.headers.get('Authorization', 'nobody')}")
                self.answer(204 if self.command == "DELETE" else 200)
            case "heard":
                count(body.decode())
                self.answer(200, {"key": self.headers.get("X-Key")})
            case "flaky":
                self.flaky(query)
            case "token":
                self.token(dict(urllib.parse.parse_qsl(body.decode())))
            case "revoke":
                tokens.clear()
                self.answer(200, {})
            case "private":
                token = self.headers.get("Authorization", "").removeprefix("Bearer ")
                if token in tokens:
                    self.answer(200, {"as": tokens[token], "token": token})
                else:
                    self.answer(401, {"error": "invalid_token"})
            case _:
                self.answer(404, {"error": "unknown"})

    def flaky(self, query):
        seen = count(query["key"])
        if seen > int(query.get("times", 1)):
            return self.answer(200, {"seen": seen})
        match query["how"]:
            case "reset":
                # Closing with a linger of zero sends a reset.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
            case "close":
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            case status:
                wait = [("Retry-After", query["wait"])] if "wait" in query else []
                self.answer(int(status), {"error": "busy"}, headers=wait)

    def token(self, form):
        known = {"me": "p@ss:w rd", "poster": "posted"}
        header = self.headers.get("Authorization", "")
        if header.startswith("Basic "):
            client, _, secret = base64.b64decode(header[6:]).decode().partition(":")
            client, secret = (urllib.parse.unquote_plus(text) for text in (client, secret))
            # This one is only known by what it posts.
            is_known = client != "poster" and known.get(client) == secret
        else:
            client, secret = form.get("client_id"), form.get("client_secret")
            is_known = client == "public" or (client in known and known[client] == secret)
        if not is_known:
            return self.answer(401, {"error": "invalid_client"})
        if form["grant_type"] == "refresh_token":
            # Each can be used once, and the answer holds the next.
            if count("refresh " + form["refresh_token"]) > 1 or not form["refresh_token"].startswith("r"):
                return self.answer(400, {"error": "invalid_grant"})
            if form["refresh_token"].endswith("-slow"):
                time.sleep(2)
        number = count("tokens")
        token = f"t{number}"
        tokens[token] = {"client": client, "grant": form["grant_type"], "scope": form.get("scope")}
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
        if form["grant_type"] == "refresh_token":
            answer["refresh_token"] = f"r{number}"
        self.answer(200, answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = handle_any


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
