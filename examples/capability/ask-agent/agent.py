"""A small A2A agent that counts words: python3 agent.py [PORT]. It takes its time, so that the task has to be waited for."""

import json
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

tasks = {}


def work(task, text):
    time.sleep(0.3)
    task["artifacts"] = [{"artifactId": "1", "parts": [{"data": {"words": len(text.split())}}]}]
    task["status"] = {"state": "TASK_STATE_COMPLETED"}


def send_message(params):
    text = " ".join(part.get("text", "") for part in params["message"]["parts"])
    task = {"id": str(uuid.uuid4()), "contextId": str(uuid.uuid4()), "status": {"state": "TASK_STATE_WORKING"}}
    tasks[task["id"]] = task
    threading.Thread(target=work, args=(task, text), daemon=True).start()
    return {"task": task}


METHODS = {"SendMessage": send_message, "GetTask": lambda params: tasks[params["id"]]}


class Agent(BaseHTTPRequestHandler):
    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != "/.well-known/agent-card.json":
            return self.answer(404, {})
        url = f"http://127.0.0.1:{self.server.server_port}/"
        interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        self.answer(200, {
            "name": "Word counter", "description": "Counts words.", "version": "0.1.0", "capabilities": {},
            "supportedInterfaces": [interface], "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["application/json"], "skills": [],
        })

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = {"jsonrpc": "2.0", "id": request.get("id")}
        method = METHODS.get(request.get("method"))
        if method is None:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        else:
            reply["result"] = method(request["params"])
        self.answer(200, reply)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8731), Agent)
print(server.server_port, flush=True)
server.serve_forever()
