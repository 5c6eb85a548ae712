"""A collector of spans, which reads OTLP in JSON with the published definitions."""

import base64
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = ("traceId", "spanId", "parentSpanId")
SEEN = {"spans": [], "headers": {}, "refused": [], "sent": 0}
STATE = {"status": 200}


def recode(told, code):
    """OTLP writes ids as hexadecimal digits, where the JSON of other protocol buffers has base64."""
    for resource in told.get("resourceSpans", []):
        for scope in resource.get("scopeSpans", []):
            for span in scope.get("spans", []):
                for name in IDS:
                    if name in span:
                        span[name] = code(span[name])
    return told


def take(body):
    told = recode(json.loads(body), lambda text: base64.b64encode(bytes.fromhex(text)).decode())
    read = ParseDict(told, ExportTraceServiceRequest())
    again = MessageToDict(ExportTraceServiceRequest.FromString(read.SerializeToString()))
    for resource in recode(again, lambda text: base64.b64decode(text).hex())["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                SEEN["spans"].append({**span, "resource": resource["resource"], "scope": scope["scope"]})


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.say(SEEN)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/answer":
            STATE["status"] = int(body)
            return self.say({})
        SEEN["sent"] += 1
        SEEN["headers"] = {name.lower(): value for name, value in self.headers.items()}
        if STATE["status"] != 200:
            return self.say({}, STATE["status"])
        try:
            if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/json":
                raise ValueError("nothing is taken there")
            take(body)
        except Exception as error:
            SEEN["refused"].append(repr(error))
            return self.say({}, 400)
        return self.say({})


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Collector)
server.daemon_threads = True
print("ready", flush=True)
server.serve_forever()
