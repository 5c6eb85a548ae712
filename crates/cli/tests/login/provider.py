"""An MCP server, an agent, an API, and where people sign in for them, in one: of the standard library alone.

provider.py SETUP: says its port, then serves until it is killed. SETUP is a JSON object: `wants`, the scopes its challenge names;
`knows`, those its metadata lists; `gives`, those it grants whatever is asked for (null: what is asked for; "silent": that, unsaid);
`metadata`, what is different in its metadata (OWN is its own address); `registers`, what more it says to who registers; `code`, what is different in a code for a browser elsewhere
(null: it gives none); `polls`, the errors that are answered one by one to who asks after such a code, before it is looked whether somebody used it.
Whoever comes to /device with the code has used it; whoever comes to /end has ended the token, and to /forget the refresh token.
`greets`, the status with which a greeting is answered to everybody (null: only to whom is known); `life`, the seconds that a token lives; `refreshes`, whether one can be renewed. The agent at /agent says where to sign in by its challenge
(`agent` is "challenge"), at the known place ("known") or by its card alone (null); `card` is that card, `hidden` whether there is no metadata of who signs people in.
"""
import http.server, json, secrets, sys, urllib.parse

SETUP = {
    "wants": ["read"], "knows": ["read", "write"], "gives": None, "metadata": {}, "registers": {}, "code": None, "polls": [],
    "life": 3600, "refreshes": False, "agent": None, "card": None, "hidden": False, "greets": None,
} | json.loads(sys.argv[1])
LOG = {"asked": [], "calls": [], "methods": [], "registered": [], "devices": [], "polls": [], "refreshes": 0, "basic": [], "tokens": [], "revoked": [], "forms": []}
STATE = {"token": "access-0123456789", "device_code": None, "used": None, "forgot": False}
USER_CODE = "WDJB-MJHT"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, said, status=200, **headers):
        data = b"" if said is None else json.dumps(said).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        own = f"http://127.0.0.1:{self.server.server_address[1]}"
        if path == "/log":
            return self.answer(LOG)
        if path == "/resource":
            return self.answer({"resource": f"{own}/mcp", "authorization_servers": [own]})
        if path == "/.well-known/oauth-protected-resource/agent" and SETUP["agent"] == "known" or path == "/resource-of-agent":
            return self.answer({"resource": f"{own}/agent", "authorization_servers": [own]})
        if path == "/.well-known/agent-card.json" and SETUP["card"] is not None:
            return self.answer(json.loads(json.dumps(SETUP["card"]).replace("OWN", own)))
        if path == "/api":
            return self.answer({"said": self.headers.get("Authorization")}, 200 if self.is_known() else 401)
        if path == "/forget":
            STATE["forgot"] = True
            return self.answer({})
        if path == "/.well-known/oauth-authorization-server" and not SETUP["hidden"]:
            metadata = {
                "issuer": own, "authorization_endpoint": f"{own}/authorize", "token_endpoint": f"{own}/token",
                "registration_endpoint": f"{own}/register", "revocation_endpoint": f"{own}/revoke", "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"], "scopes_supported": SETUP["knows"]}
            if SETUP["code"] is not None:
                metadata["device_authorization_endpoint"] = f"{own}/device_authorization"
            changed = json.loads(json.dumps(SETUP["metadata"]).replace("OWN", own))
            return self.answer(metadata | changed)
        if path == "/device":
            STATE["used"] = "yes" if f"user_code={USER_CODE}" in query else "no"
            return self.answer({})
        if path == "/end":
            STATE["token"] = "ended"
            return self.answer({})
        if path == "/authorize":
            asked = dict(urllib.parse.parse_qsl(query))
            LOG["asked"].append(asked.get("scope", "").split())
            back = urllib.parse.urlencode({"code": "c0de", "state": asked["state"]})
            return self.answer(None, 302, Location=f"{asked['redirect_uri']}?{back}")
        self.answer({}, 405 if path == "/mcp" else 404)

    do_DELETE = do_GET

    def is_known(self):
        return self.headers.get("Authorization") == f"Bearer {STATE['token']}"

    def agent(self, said, own):
        scope = f', scope="{" ".join(SETUP["wants"])}"' if SETUP["wants"] else ""
        if not self.is_known():
            named = f' resource_metadata="{own}/resource-of-agent"{scope}' if SETUP["agent"] == "challenge" else ' realm="agent"'
            return self.answer({}, 401, WWW_Authenticate=f"Bearer{named}")
        if said["method"] not in ("SendMessage", "message/send"):
            return self.answer({"jsonrpc": "2.0", "id": said["id"], "error": {"code": -32001, "message": "no such task"}})
        part = said["params"]["message"]["parts"][0]
        if part.get("text") == "change" and "write" not in LOG["asked"][-1]:
            return self.answer({}, 403, WWW_Authenticate='Bearer error="insufficient_scope", scope="write"')
        LOG["calls"].append("agent")
        told = {"messageId": "1", "parts": [{"data": {"heard": part, "as": self.headers["Authorization"]}}]}
        result = {"message": told} if said["method"] == "SendMessage" else {"kind": "message", **told}
        self.answer({"jsonrpc": "2.0", "id": said["id"], "result": result})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/register":
            LOG["registered"].append(json.loads(body))
            return self.answer({"client_id": "x"} | SETUP["registers"], 201)
        own = f"http://127.0.0.1:{self.server.server_address[1]}"
        if self.path == "/agent":
            return self.agent(json.loads(body), own)
        form = dict(urllib.parse.parse_qsl(body.decode())) if self.path != "/mcp" else {}
        if self.path == "/revoke":
            LOG["revoked"].append(form["token"])
            return self.answer({})
        if self.path == "/device_authorization":
            LOG["devices"].append(form)
            LOG["basic"].append(self.headers.get("Authorization"))
            LOG["asked"].append(form.get("scope", "").split())
            STATE["device_code"] = "device-" + secrets.token_hex(16)
            return self.answer({
                "device_code": STATE["device_code"], "user_code": USER_CODE, "expires_in": 600, "interval": 0,
                "verification_uri": f"{own}/device", "verification_uri_complete": f"{own}/device?user_code={USER_CODE}",
            } | SETUP["code"])
        if self.path == "/token":
            LOG["forms"].append(form)
            if form["grant_type"].endswith(":device_code"):
                LOG["polls"].append(form)
                scripted = SETUP["polls"][len(LOG["polls"]) - 1:][:1]
                is_ours = form["device_code"] == STATE["device_code"]
                waits = {None: ["authorization_pending"], "no": ["access_denied"], "yes": []}[STATE["used"]]
                for error in scripted or ([] if is_ours else ["invalid_grant"]) or waits:
                    return self.answer({"error": error, "error_description": form["device_code"]}, 400)
            if form["grant_type"] == "refresh_token":
                if STATE["forgot"]:
                    return self.answer({"error": "invalid_grant"}, 400)
                LOG["refreshes"] += 1
                STATE["token"] = "access-" + secrets.token_hex(16)
            given = {"access_token": STATE["token"], "token_type": "Bearer", "expires_in": SETUP["life"]}
            LOG["tokens"].append(STATE["token"])
            if SETUP["code"] is not None or SETUP["refreshes"]:
                given["refresh_token"] = "refresh-" + secrets.token_hex(16)
            if SETUP["gives"] != "silent":
                given["scope"] = " ".join(LOG["asked"][-1] if SETUP["gives"] is None else SETUP["gives"])
            return self.answer(given)
        if self.path != "/mcp":
            return self.answer({}, 404)
        said = json.loads(body)
        is_greeted = SETUP["greets"] is not None and said["method"] == "initialize"
        if not self.is_known() and not is_greeted:
            scope = f', scope="{" ".join(SETUP["wants"])}"' if SETUP["wants"] else ""
            return self.answer({}, 401, WWW_Authenticate=f'Bearer resource_metadata="{own}/resource"{scope}')
        if is_greeted and SETUP["greets"] != 200:
            return self.answer({}, SETUP["greets"])
        LOG["methods"].append(said["method"])
        if "id" not in said:
            return self.answer(None, 202)
        tool = lambda name: {"name": name, "description": name, "inputSchema": {"type": "object"}}
        results = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}},
            "tools/list": {"tools": [tool("look"), tool("change"), tool("rule")]},
            "tools/call": {"content": [{"type": "text", "text": f"did {said.get('params', {}).get('name')}"}]},
        }
        if said["method"] == "tools/call":
            LOG["calls"].append(said["params"]["name"])
        if said["method"] in results:
            return self.answer({"jsonrpc": "2.0", "id": said["id"], "result": results[said["method"]]})
        self.answer({"jsonrpc": "2.0", "id": said["id"], "error": {"code": -32601, "message": "no such method"}})


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
server.handle_error = lambda *_: None
print(server.server_address[1], flush=True)
server.serve_forever()
