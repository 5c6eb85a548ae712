"""A person with `haft`, a browser and an agent: what the official conformance suite starts for a client.

The suite gives the address of a server as the last argument. The person writes it into the settings of a client, imports
these, signs in where the server wants it, approves what it offers, and has an agent list and call all of it through
`haft mcp`. Nothing here speaks with the server: every request is one of `haft`, whose path is in `HAFT`, or of the browser.
Hints are followed as they are printed. What wants more after a sign-in is signed in for once more, and then given up. The last line
of standard output says how it ended: `done`, or `gave up: ` and why.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

PACKAGE = "server-json:imported/peer"
NEWER = "2026-07-28"
REVISION = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))

# Whom the person says that they are, where they have published a document about it.
DOCUMENT = "https://conformance-test.local/client-metadata.json"

# Nobody is asked about tools that do not say what they change.
POLICY = '[agents]\ninstall = "never"\n[approval]\nundeclared = "allow"\n'


class GaveUp(Exception):
    """What the person could not get past."""


class Home:
    """A fresh home, with the server in it."""

    def __init__(self, folder, url):
        self.folder = folder
        home = os.path.join(folder, "home")
        os.makedirs(home, mode=0o700)
        with open(os.path.join(home, "policy.toml"), "w") as file:
            file.write(POLICY)
        self.begin = [os.environ["HAFT"], "--home", home, "--non-interactive"]
        settings = os.path.join(folder, "settings.json")
        with open(settings, "w") as file:
            json.dump({"mcpServers": {"peer": {"type": "http", "url": url}}}, file)
        said = self.run("import", settings, "--yes", "--json")
        entry = json.loads(said.stdout)["entries"][0]
        self.state = entry["state"]
        if self.state not in ("installed", "unstarted"):
            raise GaveUp("; ".join(entry["why"]))

    def start(self, *arguments):
        pipe = subprocess.PIPE
        command = [*self.begin, *arguments]
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=self.folder)

    def run(self, *arguments):
        command = [*self.begin, *arguments]
        ran = subprocess.run(command, input="", capture_output=True, text=True, cwd=self.folder)
        print("$ haft", *arguments, f"-> {ran.returncode}", file=sys.stderr)
        print(ran.stdout + ran.stderr, file=sys.stderr)
        return ran

    def approve(self):
        """Approves what the server offers, as it was just shown; signs in once more where it wants that."""
        shown = self.run("approve", "surface", PACKAGE)
        scopes = wanted(shown.stderr)
        if scopes is not None:
            self.sign_in(*scopes)
            shown = self.run("approve", "surface", PACKAGE)
        digest = re.search(r"--digest (sha256:[0-9a-f]{64})", shown.stderr)
        if digest is None:
            raise GaveUp(shown.stderr)
        approved = self.run("approve", "surface", PACKAGE, "--digest", digest[1])
        if approved.returncode:
            raise GaveUp(approved.stderr)

    def sign_in(self, *scopes):
        """Signs in, and agrees to each host of this machine that `haft` names."""
        arguments = ["login", PACKAGE, "--timeout", "1m"]
        arguments += [word for scope in scopes for word in ("--scope", scope)]
        secret = CONTEXT.get("client_secret")
        if "client_id" in CONTEXT:
            arguments += ["--client-id", CONTEXT["client_id"]]
            arguments += ["--client-secret"] if secret else []
        else:
            arguments += ["--client-id", DOCUMENT]
        for _ in range(4):
            login = self.start(*arguments)
            if secret:
                login.stdin.write(secret + "\n")
            login.stdin.close()
            page = login.stdout.readline().strip()
            if page:
                browse(page)
            said = login.stderr.read()
            login.stdout.read()
            print("$ haft", *arguments, f"-> {login.wait()}\n{page}\n{said}", file=sys.stderr)
            if login.returncode == 0:
                return
            hint = re.search(r"hint: --allow-host (localhost:\d+) ", said)
            if hint is None:
                break
            arguments += ["--allow-host", hint[1]]
        raise GaveUp(said)


def browse(page):
    """Goes to a page, and on to wherever it sends the browser."""
    try:
        urllib.request.urlopen(page, timeout=60).read()
    except OSError as error:
        print(f"the browser: {error}", file=sys.stderr)


class Agent:
    """A client of `haft mcp`, of the era that is tried, which fills in forms with what they propose."""

    def __init__(self, home):
        self.process = home.start("mcp", "--only", PACKAGE)
        self.number = 0
        if REVISION != NEWER:
            client = {"name": "person", "version": "1"}
            about = {"protocolVersion": REVISION, "capabilities": {"elicitation": {}}, "clientInfo": client}
            self.ask("initialize", about)
            self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        """The answer to a request; what is asked meanwhile is answered."""
        if REVISION == NEWER:
            meta = {
                "io.modelcontextprotocol/protocolVersion": NEWER,
                "io.modelcontextprotocol/clientInfo": {"name": "person", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            }
            params = {**params, "_meta": meta}
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.send({"id": message["id"], "result": filled_in(message["params"])})
            elif message.get("id") == self.number:
                print(f"> {method} {json.dumps(params)}\n< {json.dumps(message)}", file=sys.stderr)
                return message
        raise GaveUp(f"`haft mcp` ended: {self.process.stderr.read()}")

    def ask_until_complete(self, method, params):
        """The same, and the request is made again with the answers to what it asks for."""
        while True:
            answer = self.ask(method, params)
            result = answer.get("result", {})
            if result.get("resultType", "complete") != "input_required":
                return answer
            asked = result.get("inputRequests", {})
            responses = {name: filled_in(one["params"]) for name, one in asked.items()}
            params = {**params, "inputResponses": responses}
            params.pop("requestState", None)
            if "requestState" in result:
                params["requestState"] = result["requestState"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def filled_in(question):
    """A form, sent off with what it proposes."""
    fields = question.get("requestedSchema", {}).get("properties", {})
    return {"action": "accept", "content": {name: proposed(field) for name, field in fields.items()}}


def proposed(field):
    if "default" in field:
        return field["default"]
    return {"boolean": True, "integer": 1, "number": 1}.get(field.get("type"), "yes")


def arguments_of(tool):
    """What a tool may be called with, by its schema."""
    schema = tool["inputSchema"]
    properties = schema.get("properties", {})
    return {name: proposed(properties[name]) for name in schema.get("required", []) if name in properties}


def calls(tools):
    """Each tool with its arguments: those that the scenario names, else whatever its schema takes."""
    named = CONTEXT.get("toolCalls")
    if named:
        return [(one["name"], one["arguments"]) for one in named]
    schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
    if "json_schema_echo" in schemas:
        return [("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})]
    return [(tool["name"], arguments_of(tool)) for tool in tools]


def wanted(words):
    """The scopes that somebody is told to sign in for; `None` where nobody is told so."""
    command = re.search(r"`haft login ([^`]*)`", words)
    return command and re.findall(r"--scope (\S+)", command[1])


def call(home, agent, name, arguments):
    """Calls a tool as an agent does: once more without what it does not take, and once more after the owner signed in."""
    params = {"name": name, "arguments": arguments}
    error = refusal(agent.ask_until_complete("tools/call", params))
    if error.get("code") == "bad_input":
        kept = {key: value for key, value in arguments.items() if value is not None}
        params = {"name": name, "arguments": kept}
        error = refusal(agent.ask_until_complete("tools/call", params))
    if error.get("code") == "needs_login":
        home.sign_in(*wanted(error["grant"]))
        error = refusal(agent.ask_until_complete("tools/call", params))
    # What the tool itself makes of a call is for the suite to judge.
    if error.get("code", "tool_failed") != "tool_failed":
        raise GaveUp(error["message"])


def refusal(answer):
    """Why `haft` made nothing of a call."""
    return answer.get("result", {}).get("structuredContent", {}).get("error", {})


def use(home, agent):
    """Lists and calls all that there is."""
    tools = agent.ask("tools/list", {})["result"]["tools"]
    for name, arguments in calls(tools):
        call(home, agent, name, arguments)
    for kind, key, verb in (("resources", "uri", "read"), ("prompts", "name", "get")):
        listed = agent.ask(f"{kind}/list", {}).get("result", {}).get(kind, [])
        for one in listed:
            agent.ask_until_complete(f"{kind}/{verb}", {key: one[key]})


def main():
    os.umask(0o077)
    with tempfile.TemporaryDirectory(prefix="haft-person-") as folder:
        home = Home(folder, sys.argv[-1])
        if home.state == "unstarted":
            home.sign_in()
            home.approve()
        agent = Agent(home)
        try:
            use(home, agent)
        finally:
            agent.end()


try:
    main()
    print("done")
except GaveUp as error:
    print("gave up:", " ".join(str(error).split()))
    sys.exit(1)
