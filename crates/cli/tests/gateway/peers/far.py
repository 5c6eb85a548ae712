"""A server of the newer era behind a URL, which tells of changes to who listens. Says its port, then serves until it is killed.

Its tool `touch` waits for somebody who listens, and then tells of `what`: prompts, a resource, or (drop) nothing: it hangs up on them all.
/log has what the listeners wanted, one by one.
"""
import http.server, json, queue, threading, time

LISTENERS, LOG, LOCK = {}, [], threading.Lock()
URI, OTHER = "far://paper", "far://other"
KEY = "io.modelcontextprotocol/subscriptionId"
CAPABILITIES = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"subscribe": True}}


def touch(what):
    wants = lambda wanted: what != "resource" or URI in wanted.get("resourceSubscriptions", [])
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with LOCK:
            told = [(number, box) for number, (wanted, box) in LISTENERS.items() if wants(wanted)]
        if told:
            break
        time.sleep(0.02)
    for number, box in told:
        meta = {"_meta": {KEY: number}}
        box.put({
            "prompts": {"method": "notifications/prompts/list_changed", "params": meta},
            "resource": {"method": "notifications/resources/updated", "params": {"uri": URI, **meta}},
            "drop": None,
        }[what])
    if what == "drop":
        with LOCK:
            LISTENERS.clear()
    return f"told {len(told)}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, said, status=200):
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer(LOG if self.path == "/log" else {}, 200 if self.path == "/log" else 405)

    def listen(self, said):
        wanted = said["params"]["notifications"]
        accepted = {name: value for name, value in wanted.items() if name != "resourceSubscriptions"}
        watched = [uri for uri in wanted.get("resourceSubscriptions", []) if uri == URI]
        accepted |= {"resourceSubscriptions": watched} if watched else {}
        box = queue.Queue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

        def tell(message):
            self.wfile.write(f"data: {json.dumps({'jsonrpc': '2.0', **message})}\n\n".encode())
            self.wfile.flush()

        tell({"method": "notifications/subscriptions/acknowledged", "params": {"notifications": accepted, "_meta": {KEY: said["id"]}}})
        with LOCK:
            LOG.append(wanted)
            LISTENERS[said["id"]] = (accepted, box)
        try:
            while (message := box.get()) is not None:
                tell(message)
        except OSError:
            pass
        with LOCK:
            LISTENERS.pop(said["id"], None)
        self.close_connection = True

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        method, params = said["method"], said.get("params", {})
        if "id" not in said:
            if method == "notifications/cancelled":
                with LOCK:
                    _, box = LISTENERS.pop(params.get("requestId"), (None, None))
                box and box.put(None)
            return self.answer(None, 202)
        if method == "subscriptions/listen":
            return self.listen(said)
        listed = {"ttlMs": 0, "cacheScope": "private"}
        results = {
            "server/discover": lambda: {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES, "serverInfo": {"name": "far", "version": "1"}, **listed},
            "tools/list": lambda: {"tools": [{"name": "touch", "description": "Touches", "inputSchema": {"type": "object"}}], **listed},
            "prompts/list": lambda: {"prompts": [{"name": "greet"}], **listed},
            "resources/list": lambda: {"resources": [{"uri": uri, "name": uri} for uri in (URI, OTHER)], **listed},
            "resources/templates/list": lambda: {"resourceTemplates": [], **listed},
            "tools/call": lambda: {"content": [{"type": "text", "text": touch(params["arguments"]["what"])}]},
        }
        if method not in results:
            return self.answer({"jsonrpc": "2.0", "id": said["id"], "error": {"code": -32601, "message": "no such method"}}, 404)
        self.answer({"jsonrpc": "2.0", "id": said["id"], "result": {"resultType": "complete", **results[method]()}})


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
server.handle_error = lambda *_: None
print(server.server_address[1], flush=True)
server.serve_forever()
