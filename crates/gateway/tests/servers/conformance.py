#!/usr/bin/env python3
"""An MCP server over stdio that offers what the official conformance suite asks for, in both eras.

One JSON-RPC message a line. A client either shakes hands (`initialize`, 2024-11-05 to 2025-11-25) and may then
be asked things in the middle of a call, or says with every request who it is (2026-07-28) and is answered with
`input_required` instead. A tool is written once for both: what it asks, its `Call` brings to the client.

`conformance.py legacy` speaks only as if the later era had never come, `conformance.py modern` only the later one.
"""

import base64
import hashlib
import hmac
import io
import itertools
import json
import queue
import struct
import sys
import threading
import traceback
import uuid
import wave
import zlib
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Callable

MODERN = ("2026-07-28",)
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
SERVER = {"name": "conformance", "version": "1.0.0"}
CAPABILITIES = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True},
    "tools": {"listChanged": True},
}

PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = PREFIX + "protocolVersion"
CLIENT_KEY = PREFIX + "clientCapabilities"
LEVEL_KEY = PREFIX + "logLevel"
SERVER_KEY = PREFIX + "serverInfo"
SUBSCRIPTION_KEY = PREFIX + "subscriptionId"
TASKS = PREFIX + "tasks"

# How long an answer stays good, and for whom. They differ, so that one taken for another is seen.
CACHE = {
    "server/discover": (60_000, "public"),
    "tools/list": (5_000, "public"),
    "prompts/list": (4_000, "public"),
    "resources/list": (3_000, "public"),
    "resources/templates/list": (2_000, "public"),
    "resources/read": (1_000, "private"),
}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
NEEDED = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
PATIENCE = 60
# Not a secret: a call may be taken up again by another process of this server.
KEY = b"known to every process of this fixture"

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
NO_RESOURCE, NO_CAPABILITY, NO_VERSION = -32002, -32021, -32022


# What ends a call early.


class Refused(Exception):
    """The request gets an error of the protocol."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


def error_of(problem):
    """The error of the protocol for what went wrong."""
    if isinstance(problem, Refused):
        return problem.error
    traceback.print_exception(problem)
    return {"code": INTERNAL, "message": f"{type(problem).__name__}: {problem}"}


class Failed(Exception):
    """The tool ran and did not succeed: a result that says so."""


class InputRequired(Exception):
    """The client has to answer questions first, and call again."""

    def __init__(self, questions, state):
        super().__init__("input required")
        self.result = {"resultType": "input_required", "inputRequests": questions, "requestState": seal(state)}


class Stopped(Exception):
    """Nobody waits for the answer any more."""


# Content.


def png():
    """One red pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def wav():
    """A hundredth of a second of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(b"\x80" * 80)
    return file.getvalue()


def encoded(data):
    return base64.b64encode(data).decode()


def text(words):
    return {"type": "text", "text": words}


def image():
    return {"type": "image", "data": encoded(png()), "mimeType": "image/png"}


def audio():
    return {"type": "audio", "data": encoded(wav()), "mimeType": "audio/wav"}


def embedded(uri, kind, words):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


def content(*blocks):
    return {"content": list(blocks)}


def messages(*blocks):
    return {"messages": [{"role": "user", "content": block} for block in blocks]}


def said(answer):
    """What the user answered, in words."""
    return f"action={answer['action']}, content={json.dumps(answer.get('content'))}"


# Schemas, as far as the ones in this file go.


def is_a(kind, value):
    kinds = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list, "object": dict}
    return isinstance(value, kinds[kind]) and (kind == "boolean") == isinstance(value, bool)


def fits(schema, value, root):
    return next(faults(schema, value, root), None) is None


def faults(schema, value, root=None, at="arguments"):
    """Says where a value does not fit a schema."""
    root = root or schema
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    kind = schema.get("type")
    if kind and not is_a(kind, value):
        yield f"{at} must be of type {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} must be one of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{at} must be {schema['const']!r}"
    if isinstance(value, dict):
        yield from faults_of_object(schema, value, root, at)
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from faults(schema.get("items", {}), item, root, f"{at}[{number}]")
    for part in schema.get("allOf", ()):
        yield from faults(part, value, root, at)
    for choice in ("anyOf", "oneOf"):
        if choice in schema and not any(fits(part, value, root) for part in schema[choice]):
            yield f"{at} fits nothing of {choice}"
    if "if" in schema:
        branch = "then" if fits(schema["if"], value, root) else "else"
        yield from faults(schema.get(branch, {}), value, root, at)


def faults_of_object(schema, value, root, at):
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{at}.{name} is missing"
    properties = schema.get("properties", {})
    for name, item in value.items():
        if name in properties:
            yield from faults(properties[name], item, root, f"{at}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{at}.{name} is not known"


# Questions to the client, and its answers.


def elicit(message, /, required=None, **properties):
    """Asks the user for a form; all of it must be filled in unless it is said what must."""
    schema = {"type": "object", "properties": properties}
    names = list(properties) if required is None else required
    if names:
        schema["required"] = names
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(prompt, tokens=100):
    """Asks the client's model."""
    prompts = [{"role": "user", "content": text(prompt)}]
    return {"method": "sampling/createMessage", "params": {"messages": prompts, "maxTokens": tokens}}


def roots():
    """Asks where the client's files are."""
    return {"method": "roots/list", "params": {}}


def allowed(question, capabilities):
    """Whether a client with these capabilities may be asked this."""
    capability = capabilities.get(NEEDED[question["method"]])
    if question["method"] == "elicitation/create":
        return capability is not None and (not capability or "form" in capability)
    return capability is not None


def answers(question, answer):
    """Whether this answers the question. What has not even the shape of an answer is refused."""
    if answer is None:
        return False
    method = question["method"]
    if not isinstance(answer, dict) or not is_answer(method, answer):
        raise Refused(INVALID_PARAMS, f"this is no answer to {method}")
    if method != "elicitation/create" or answer["action"] != "accept":
        return True
    schema = question["params"]["requestedSchema"]
    return fits(schema, answer["content"], schema)


def is_answer(method, answer):
    if method == "roots/list":
        return isinstance(answer.get("roots"), list)
    if method == "sampling/createMessage":
        return all(name in answer for name in ("role", "content", "model"))
    accepted = answer.get("action") == "accept" and isinstance(answer.get("content"), dict)
    return accepted or answer.get("action") in ("decline", "cancel")


# What the client keeps for us between two rounds.


def code_of(body):
    return hmac.new(KEY, body.encode(), hashlib.sha256).hexdigest()


def seal(state):
    body = base64.urlsafe_b64encode(json.dumps(state, sort_keys=True).encode()).decode()
    return f"{body}.{code_of(body)}"


def unseal(sealed):
    if not isinstance(sealed, str):
        raise Refused(INVALID_PARAMS, "requestState must be a string")
    body, _, code = sealed.rpartition(".")
    if not hmac.compare_digest(code.encode(), code_of(body).encode()):
        raise Refused(INVALID_PARAMS, "requestState is not as this server wrote it")
    return json.loads(base64.urlsafe_b64decode(body))


# Calls: a request that is being answered, in either era.


class Call:
    """How a request's caller is told something, asked something, and waited for."""

    def __init__(self, server, request, capabilities, level):
        self.server = server
        self.id = request["id"]
        self.method = request["method"]
        self.params = request["params"]
        self.capabilities = capabilities
        self.level = level
        self.box = queue.SimpleQueue()
        self.stopped = threading.Event()

    def argument(self, name, default=None):
        return self.params.get("arguments", {}).get(name, default)

    def stop(self):
        self.stopped.set()
        self.box.put(None)

    def wait(self, seconds):
        if self.stopped.wait(seconds):
            raise Stopped

    def hear(self, patience=None):
        """What comes next for this call."""
        heard = self.box.get(timeout=patience)
        if heard is None:
            raise Stopped
        return heard

    def log(self, words, level="info"):
        if self.level is not None and LEVELS.index(level) >= LEVELS.index(self.level):
            self.server.notify("notifications/message", {"level": level, "logger": SERVER["name"], "data": words})

    def progress(self, done, total):
        token = self.params.get("_meta", {}).get("progressToken")
        if token is not None:
            self.server.notify("notifications/progress", {"progressToken": token, "progress": done, "total": total})

    def may(self, question):
        return allowed(question, self.capabilities)


class LegacyCall(Call):
    """A call of a client that shook hands: it is asked while it waits."""

    def finish(self, result):
        return result

    def ask(self, questions, sealed=False):
        return {key: self.ask_one(question) for key, question in questions.items()}

    def ask_one(self, question):
        self.need(question)
        number = self.server.ask(self, question)
        try:
            reply = self.hear(PATIENCE)
        except queue.Empty:
            raise Failed(f"the client did not answer {question['method']}") from None
        except Stopped:
            self.server.notify("notifications/cancelled", {"requestId": number, "reason": "the call was cancelled"})
            raise
        finally:
            self.server.asked.pop(number, None)
        if "error" in reply:
            raise Failed(f"the client refused {question['method']}: {reply['error'].get('message')}")
        return reply["result"]

    def need(self, question):
        if not self.may(question):
            raise Failed(f"the client does not support {NEEDED[question['method']]}")

    def as_task(self, work, required=False):
        return work(self)

    def no_resource(self, uri):
        return Refused(NO_RESOURCE, "no such resource", {"uri": uri})


class ModernCall(Call):
    """A call of a client that is answered at once, and calls again with what was asked of it."""

    def __init__(self, server, request, capabilities, level):
        super().__init__(server, request, capabilities, level)
        arguments = json.dumps(self.params.get("arguments", {}), sort_keys=True)
        self.what = [self.method, self.params.get("name"), hashlib.sha256(arguments.encode()).hexdigest()]
        self.kept = self.state()
        self.given = (self.kept or {}) | self.responses()
        self.used = {}

    def state(self):
        """What was answered in earlier rounds; nothing if this is the first."""
        if "requestState" not in self.params:
            return None
        state = unseal(self.params["requestState"])
        if state["of"] != self.what:
            raise Refused(INVALID_PARAMS, "requestState belongs to another request")
        return state["answers"]

    def responses(self):
        responses = self.params.get("inputResponses", {})
        if not isinstance(responses, dict):
            raise Refused(INVALID_PARAMS, "inputResponses must be an object")
        return responses

    def finish(self, result):
        done = {"resultType": "complete", **result, "_meta": {SERVER_KEY: SERVER}}
        if done["resultType"] == "complete" and self.method in CACHE:
            done["ttlMs"], done["cacheScope"] = CACHE[self.method]
        return done

    def ask(self, questions, sealed=False):
        """Gives the answers, or has the call end with the questions. A sealed one needs our own state with them."""
        given = {} if sealed and self.kept is None else self.given
        left = {}
        for key, question in questions.items():
            self.need(question)
            if answers(question, given.get(key)):
                self.used[key] = given[key]
            else:
                left[key] = question
        if left:
            raise InputRequired(left, {"of": self.what, "answers": self.used})
        return {key: self.used[key] for key in questions}

    def need(self, question):
        if not self.may(question):
            raise lacking({NEEDED[question["method"]]: {}})

    def as_task(self, work, required=False):
        """Goes on after the caller got a handle, if it knows what to do with one."""
        if TASKS in self.capabilities.get("extensions", {}):
            return Task(self, work).begin()
        if required:
            raise lacking({"extensions": {TASKS: {}}})
        return work(self)

    def no_resource(self, uri):
        return Refused(INVALID_PARAMS, "no such resource", {"uri": uri})


def lacking(capabilities):
    """The client did not say that it can do what this needs."""
    return Refused(NO_CAPABILITY, "the client lacks a capability", {"requiredCapabilities": capabilities})


class Task(Call):
    """The part of a call that goes on after its caller got a handle."""

    LASTS = 300_000

    def __init__(self, call, work):
        request = {"id": str(uuid.uuid4()), "method": call.method, "params": {}}
        super().__init__(call.server, request, call.capabilities, None)
        self.work = work
        self.lock = threading.Lock()
        self.status = "working"
        self.created = self.updated = now()
        self.questions, self.answered, self.outcome = {}, {}, {}

    def begin(self):
        self.server.tasks[self.id] = self
        handle = {"resultType": "task", **self.handle()}
        threading.Thread(target=self.run).start()
        return handle

    def run(self):
        try:
            result = outcome_of(self.work, self)
            self.settle("completed", {"result": {"resultType": "complete", **result}})
        except Stopped:
            self.settle("cancelled")
        except Exception as error:
            self.settle("failed", {"error": error_of(error)})

    def settle(self, status, outcome=None):
        with self.lock:
            if self.status in ("working", "input_required"):
                self.move(status)
                self.outcome, self.questions = outcome or {}, {}

    def move(self, status):
        self.status, self.updated = status, now()

    def ask(self, questions, sealed=False):
        for question in questions.values():
            if not self.may(question):
                raise lacking({NEEDED[question["method"]]: {}})
        with self.lock:
            self.questions, self.answered = dict(questions), {}
            self.move("input_required")
        self.hear()
        return self.answered

    def update(self, responses):
        """Takes answers; goes on when it has all of them."""
        with self.lock:
            for key, answer in responses.items():
                if key in self.questions and answers(self.questions[key], answer):
                    self.answered[key] = answer
                    del self.questions[key]
            if self.status == "input_required" and not self.questions:
                self.move("working")
                self.box.put("answered")

    def handle(self):
        return {
            "taskId": self.id,
            "status": self.status,
            "createdAt": self.created,
            "lastUpdatedAt": self.updated,
            "ttlMs": self.LASTS,
            "pollIntervalMs": 100,
        }

    def detail(self):
        with self.lock:
            asked = {"inputRequests": dict(self.questions)} if self.status == "input_required" else {}
            return {**self.handle(), **self.outcome, **asked}


def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def outcome_of(run, call):
    """What a tool gives; that it did not succeed is a result as well."""
    try:
        return run(call)
    except Failed as failure:
        return {**content(text(str(failure))), "isError": True}


# Tools that answer at once.


def fail(call):
    raise Failed("This tool always fails, on purpose.")


def describe_person(call):
    return content(text(f"Got {json.dumps(call.params.get('arguments', {}), sort_keys=True)}"))


def tell_region(call):
    return content(text(f"The region is {call.argument('region')}."))


def several_kinds(call):
    data = embedded("test://mixed-content-resource", "application/json", '{"test": "data", "value": 123}')
    return content(text("Several kinds of content:"), image(), data)


# Tools that take their time.


def log_thrice(call):
    call.log("Tool execution started")
    call.wait(0.05)
    call.log("Tool processing data")
    call.wait(0.05)
    call.log("Tool execution completed")
    return content(text("Three messages were logged, if they are wanted."))


def log_once(call):
    call.log("Something to know")
    return content(text("A message was logged, if it is wanted."))


def report_progress(call):
    for done in (0, 50, 100):
        call.progress(done, 100)
        call.wait(0.05)
    return content(text("Done, with progress told if it is wanted."))


def answer_late(call):
    call.wait(1)
    return content(text("Here is the answer, a second later."))


# Tools that change what is offered.


def change_tools(call):
    # A server whose tools are not those that were approved is not called any more, so they are others for a moment.
    call.server.toggle("tools", CHANGING_TOOL)
    call.server.toggle("tools", CHANGING_TOOL)
    return content(text("The tools were others for a moment."))


def change_prompts(call):
    call.server.toggle("prompts", CHANGING_PROMPT)
    return content(text("The prompts are others now."))


def update_resource(call):
    call.server.touch(WATCHED)
    return content(text(f"{WATCHED} is another now."))


# Tools that ask.


def ask_model(call):
    answer = call.ask({"sample": sample(call.argument("prompt"))})["sample"]
    return content(text(f"The model says: {words_of(answer)}"))


def words_of(answer):
    """The words of a model's answer, which may come in one block or several."""
    blocks = answer["content"] if isinstance(answer["content"], list) else [answer["content"]]
    return " ".join(block.get("text", "") for block in blocks)


def ask_user(call):
    username = {"type": "string", "description": "How the user is called"}
    email = {"type": "string", "description": "Where the user gets mail"}
    form = elicit(call.argument("message"), username=username, email=email)
    return content(text(f"User response: {said(call.ask({'user': form})['user'])}"))


def ask_with_defaults(call):
    form = elicit(
        "Please look over these values",
        required=[],
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return content(text(f"Elicitation completed: {said(call.ask({'values': form})['values'])}"))


def ask_to_choose(call):
    plain = ["option1", "option2", "option3"]
    titled = [{"const": f"value{number}", "title": f"Value {number}"} for number in (1, 2, 3)]
    names = ["Option One", "Option Two", "Option Three"]
    form = elicit(
        "Please choose",
        required=[],
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return content(text(f"Elicitation completed: {said(call.ask({'choice': form})['choice'])}"))


def name_question(message="What is your name?"):
    return elicit(message, name={"type": "string"})


def name_in(answer):
    return answer.get("content", {}).get("name", "stranger")


def greet_user(call):
    answer = call.ask({"user_name": name_question()})["user_name"]
    return content(text(f"Hello, {name_in(answer)}!"))


def ask_capital(call):
    answer = call.ask({"capital_question": sample("What is the capital of France?")})["capital_question"]
    return content(text(words_of(answer)))


def ask_roots(call):
    found = call.ask({"client_roots": roots()})["client_roots"]["roots"]
    return content(text("Roots: " + ", ".join(root["uri"] for root in found)))


def confirm(call):
    question = elicit("Please confirm", ok={"type": "boolean"})
    answer = call.ask({"confirm": question}, sealed=True)["confirm"]
    return content(text(f"state-ok, {said(answer)}"))


def ask_everything(call):
    questions = {"user_name": name_question(), "greeting": sample("Make up a greeting", 50), "client_roots": roots()}
    got = call.ask(questions, sealed=True)
    where = len(got["client_roots"]["roots"])
    return content(text(f"{words_of(got['greeting'])} {name_in(got['user_name'])} has {where} roots."))


def ask_in_two_rounds(call):
    name = name_in(call.ask({"step1": name_question("Step 1: What is your name?")}, sealed=True)["step1"])
    question = elicit("Step 2: What is your favorite color?", color={"type": "string"})
    color = call.ask({"step2": question}, sealed=True)["step2"].get("content", {}).get("color", "no color")
    return content(text(f"{name} likes {color}."))


def ask_what_is_allowed(call):
    questions = {"user_name": name_question(), "capital_question": sample("What is the capital of France?")}
    got = call.ask({key: question for key, question in questions.items() if call.may(question)})
    return content(text(f"Asked: {', '.join(got) or 'nothing'}"))


def need_model(call):
    call.need(sample(""))
    return content(text("The client has a model to ask."))


def ask_on_the_way(call):
    call.progress(1, 2)
    return greet_user(call)


# Tools that may go on as tasks.


def greet(call):
    return content(text(f"Hello, {call.argument('name')}!"))


def compute_slowly(call):
    def work(part):
        part.wait(call.argument("seconds", 0))
        return content(text(f"Computed {call.argument('label', 'something')}."))

    return call.as_task(work)


def fail_later(call):
    def work(part):
        part.wait(1)
        raise Failed("This job always fails, on purpose.")

    return call.as_task(work, required=True)


def break_later(call):
    def work(part):
        raise Refused(INTERNAL, "This job always breaks, on purpose.")

    return call.as_task(work)


def delete_if_confirmed(call):
    def work(part):
        filename = call.argument("filename")
        question = elicit(f"Delete {filename}?", required=[], confirm={"type": "boolean"})
        answer = part.ask({"confirmation": question})["confirmation"]
        sure = answer.get("content", {}).get("confirm") is True
        return content(text(f"{filename} would be {'deleted' if sure else 'kept'}."))

    return call.as_task(work)


def ask_two_at_once(call):
    def work(part):
        one = elicit("Who is the first?", required=[], name={"type": "string"})
        two = elicit("Who is the second?", required=[], name={"type": "string"})
        got = part.ask({"first": one, "second": two})
        return content(text(f"{name_in(got['first'])} and {name_in(got['second'])}"))

    return call.as_task(work)


def greet_later(call):
    name = name_in(call.ask({"user_name": name_question()})["user_name"])
    return call.as_task(lambda part: content(text(f"Hello, {name}!")), required=True)


# What is offered.


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    run: Callable
    schema: dict

    def shown(self):
        return {"name": self.name, "description": self.description, "inputSchema": self.schema}


def tool(name, description, run, required=(), /, **properties):
    schema = {"type": "object", "properties": properties}
    return Tool(name, description, run, schema | ({"required": list(required)} if required else {}))


def gives(*blocks):
    """A tool that always has the same content."""
    return lambda call: content(*blocks)


STRING, NUMBER = {"type": "string"}, {"type": "number"}
PERSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING}},
    },
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
REGION = {"type": "string", "x-mcp-header": "Region"}
CHANGING_TOOL = "test_changing_tool"

TOOLS = [
    tool("test_simple_text", "Gives a text.", gives(text("This is a simple text response for testing."))),
    tool("test_image_content", "Gives an image.", gives(image())),
    tool("test_audio_content", "Gives a sound.", gives(audio())),
    tool(
        "test_embedded_resource",
        "Gives a resource.",
        gives(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
    ),
    tool("test_multiple_content_types", "Gives a text, an image and a resource.", several_kinds),
    tool("test_error_handling", "Always fails.", fail),
    tool("test_tool_with_logging", "Logs three messages.", log_thrice),
    tool("test_logging_tool", "Logs a message.", log_once),
    tool("test_tool_with_progress", "Tells its progress three times.", report_progress),
    tool("test_reconnection", "Answers after a second.", answer_late),
    Tool("json_schema_2020_12_tool", "Has a schema with all that is new in 2020-12.", describe_person, PERSON),
    tool("test_header_parameter", "Has an argument that is a header too.", tell_region, ["region"], region=REGION),
    tool("test_sampling", "Asks the client's model.", ask_model, ["prompt"], prompt=STRING),
    tool("test_elicitation", "Asks the user.", ask_user, ["message"], message=STRING),
    tool("test_elicitation_sep1034_defaults", "Asks the user for values that have defaults.", ask_with_defaults),
    tool("test_elicitation_sep1330_enums", "Has the user choose, in all five ways.", ask_to_choose),
    tool("test_missing_capability", "Wants a client with a model.", need_model),
    tool("test_streaming_elicitation", "Asks the user after some progress.", ask_on_the_way),
    tool("test_trigger_tool_change", "Adds a tool, and takes it away again.", change_tools),
    tool("test_trigger_prompt_change", "Adds a prompt, or takes it away again.", change_prompts),
    tool("test_trigger_resource_update", "Changes the watched resource.", update_resource),
    tool("test_input_required_result_elicitation", "Asks the user's name.", greet_user),
    tool("test_input_required_result_sampling", "Asks the model for a capital.", ask_capital),
    tool("test_input_required_result_list_roots", "Asks for the client's roots.", ask_roots),
    tool("test_input_required_result_request_state", "Asks once, and wants its state back.", confirm),
    tool("test_input_required_result_tampered_state", "Asks once, and wants its state back unchanged.", confirm),
    tool("test_input_required_result_multiple_inputs", "Asks user, model and client at once.", ask_everything),
    tool("test_input_required_result_multi_round", "Asks twice, one after the other.", ask_in_two_rounds),
    tool("test_input_required_result_capabilities", "Asks only what the client can answer.", ask_what_is_allowed),
    tool("greet", "Greets; never as a task.", greet, ["name"], name=STRING),
    tool("slow_compute", "Takes some seconds; may be a task.", compute_slowly, seconds=NUMBER, label=STRING),
    tool("failing_job", "Fails after a second; always a task.", fail_later),
    tool("protocol_error_job", "Breaks; may be a task.", break_later),
    tool("confirm_delete", "Asks before going on; may be a task.", delete_if_confirmed, ["filename"], filename=STRING),
    tool("multi_input", "Asks two things at once; may be a task.", ask_two_at_once),
    tool("test_tool_with_task", "Asks a name, then goes on; always a task.", greet_later),
    tool(CHANGING_TOOL, "Is there at times.", gives(text("Here it is."))),
]


def plain_prompt(call):
    return messages(text("This is a simple prompt for testing."))


def prompt_with_arguments(call):
    one, two = call.argument("arg1"), call.argument("arg2")
    return messages(text(f"Prompt with arguments: arg1='{one}', arg2='{two}'"))


def prompt_with_resource(call):
    resource = embedded(call.argument("resourceUri"), "text/plain", "Embedded resource content for testing.")
    return messages(resource, text("Please process the embedded resource above."))


def prompt_with_image(call):
    return messages(image(), text("Please analyze the image above."))


def prompt_that_asks(call):
    question = elicit("What context should the prompt use?", context={"type": "string"})
    answer = call.ask({"user_context": question})["user_context"]
    return messages(text(f"Use this context: {answer.get('content', {}).get('context', 'none')}"))


@dataclass(frozen=True)
class Prompt:
    name: str
    description: str
    run: Callable
    arguments: tuple = ()

    def shown(self):
        arguments = [{"name": name, "description": f"The {name}.", "required": True} for name in self.arguments]
        return {"name": self.name, "description": self.description, "arguments": arguments}


CHANGING_PROMPT = "test_changing_prompt"
PROMPTS = [
    Prompt("test_simple_prompt", "Has a text.", plain_prompt),
    Prompt("test_prompt_with_arguments", "Repeats its arguments.", prompt_with_arguments, ("arg1", "arg2")),
    Prompt("test_prompt_with_embedded_resource", "Has a resource.", prompt_with_resource, ("resourceUri",)),
    Prompt("test_prompt_with_image", "Has an image.", prompt_with_image),
    Prompt("test_input_required_result_prompt", "Asks the user first.", prompt_that_asks),
    Prompt(CHANGING_PROMPT, "Is there at times.", plain_prompt),
]

WATCHED = "test://watched-resource"
RESOURCES = [
    {"uri": "test://static-text", "name": "Text", "description": "A text.", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "Image", "description": "An image.", "mimeType": "image/png"},
    {"uri": WATCHED, "name": "Watched", "description": "A text that changes.", "mimeType": "text/plain"},
]
TEMPLATE = "test://template/{id}/data"
TEMPLATES = [
    {"uriTemplate": TEMPLATE, "name": "Data", "description": "Data by its id.", "mimeType": "application/json"},
]
COMPLETIONS = {
    ("test_prompt_with_arguments", "arg1"): ["park", "party", "test-one", "test-two"],
    ("test_prompt_with_arguments", "arg2"): ["world", "work"],
    (TEMPLATE, "id"): ["1", "12", "123"],
}


# The server.


class Session:
    """What a client that shook hands has said."""

    def __init__(self, capabilities):
        self.capabilities = capabilities
        self.level = "info"
        self.watched = set()


class Server:
    def __init__(self, only=None):
        self.only = only
        self.writing = threading.Lock()
        self.numbers = itertools.count(1)
        self.session = None
        self.calls = {}
        self.asked = {}
        self.tasks = {}
        self.listeners = {}
        self.hidden = {CHANGING_TOOL, CHANGING_PROMPT}
        self.changes = 0

    def run(self):
        try:
            for line in sys.stdin.buffer:
                if line.strip():
                    self.read(line)
        finally:
            for call in [*self.calls.values(), *self.tasks.values()]:
                call.stop()

    # What comes in.

    def read(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            return self.send(id=None, error=Refused(PARSE_ERROR, "this is not JSON").error)
        if not isinstance(message, dict):
            return self.send(id=None, error=Refused(INVALID_REQUEST, "this is no message").error)
        if "method" not in message:
            return self.hear(message)
        message["params"] = message.get("params") or {}
        if "id" not in message:
            return self.note(message["method"], message["params"])
        self.take(message)

    def hear(self, reply):
        """The client answers a question of ours."""
        call = self.asked.get(reply.get("id"))
        if call is not None:
            call.box.put(reply)

    def note(self, method, params):
        if method == "notifications/cancelled":
            number = params.get("requestId")
            self.listeners.pop(number, None)
            if number in self.calls:
                self.calls[number].stop()

    def take(self, request):
        try:
            call, answer = self.open(request)
        except Exception as error:
            return self.send(id=request["id"], error=error_of(error))
        self.calls[call.id] = call
        if request["method"] in MAY_TAKE_LONG:
            threading.Thread(target=self.answer, args=(call, answer)).start()
        else:
            self.answer(call, answer)

    def open(self, request):
        """Says whose request this is, and what answers it."""
        method, params = request["method"], request["params"]
        if not isinstance(params, dict) or not isinstance(params.get("_meta", {}), dict):
            raise Refused(INVALID_PARAMS, "params and its _meta must be objects")
        if not isinstance(params.get("arguments", {}), dict):
            raise Refused(INVALID_PARAMS, "arguments must be an object")
        meta = params.get("_meta", {})
        modern = self.is_modern(method, meta)
        answer = (MODERN_METHODS if modern else LEGACY_METHODS).get(method)
        if answer is None:
            raise Refused(NO_METHOD, f"there is no method {method}")
        if modern:
            check_meta(meta)
            return ModernCall(self, request, meta[CLIENT_KEY], meta.get(LEVEL_KEY)), answer
        if self.session is None and method not in BEFORE_HANDSHAKE:
            raise Refused(INVALID_REQUEST, "the client has to initialize first")
        session = self.session or Session({})
        return LegacyCall(self, request, session.capabilities, session.level), answer

    def is_modern(self, method, meta):
        if self.only is not None:
            return self.only == "modern"
        if VERSION_KEY in meta or method == "server/discover":
            return True
        return self.session is None and method not in BEFORE_HANDSHAKE

    def answer(self, call, answer):
        try:
            result = answer(self, call)
            reply = None if result is None else {"result": call.finish(result)}
        except InputRequired as needed:
            reply = {"result": call.finish(needed.result)}
        except Stopped:
            reply = None
        except Exception as error:
            reply = {"error": error_of(error)}
        self.calls.pop(call.id, None)
        if reply is not None and not call.stopped.is_set():
            self.send(id=call.id, **reply)

    # What goes out.

    def send(self, **message):
        line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
        with self.writing:
            sys.stdout.write(line)
            sys.stdout.flush()

    def notify(self, method, params=None):
        self.send(method=method, **({} if params is None else {"params": params}))

    def ask(self, call, question):
        """Asks the client, on behalf of a call that gets the answer."""
        number = f"question-{next(self.numbers)}"
        self.asked[number] = call
        self.send(id=number, **question)
        return number

    # What changes.

    def toggle(self, kind, name):
        self.hidden ^= {name}
        if self.session:
            self.notify(f"notifications/{kind}/list_changed")
        self.tell_listeners(f"notifications/{kind}/list_changed", {}, lambda wanted: wanted.get(f"{kind}ListChanged"))

    def touch(self, uri):
        self.changes += 1
        if self.session and uri in self.session.watched:
            self.notify("notifications/resources/updated", {"uri": uri})
        self.tell_listeners(
            "notifications/resources/updated",
            {"uri": uri},
            lambda wanted: uri in wanted.get("resourceSubscriptions", ()),
        )

    def tell_listeners(self, method, params, concerns):
        for number, wanted in list(self.listeners.items()):
            if concerns(wanted):
                self.notify(method, {**params, "_meta": {SUBSCRIPTION_KEY: number}})

    # What the methods answer.

    def initialize(self, call):
        self.session = Session(call.params.get("capabilities", {}))
        asked = call.params.get("protocolVersion")
        version = asked if asked in LEGACY else LEGACY[0]
        return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": SERVER}

    def discover(self, call):
        return {"supportedVersions": list(MODERN), "capabilities": {**CAPABILITIES, "extensions": {TASKS: {}}}}

    def ping(self, call):
        return {}

    def set_level(self, call):
        level = call.params.get("level")
        if level not in LEVELS:
            raise Refused(INVALID_PARAMS, f"there is no level {level}")
        self.session.level = level
        return {}

    def list_tools(self, call):
        return {"tools": [entry.shown() for entry in self.shown(TOOLS)]}

    def call_tool(self, call):
        found = self.find(TOOLS, call)
        wrong = list(faults(found.schema, call.params.get("arguments", {})))
        if wrong:
            return {**content(text("; ".join(wrong))), "isError": True}
        return outcome_of(found.run, call)

    def list_prompts(self, call):
        return {"prompts": [entry.shown() for entry in self.shown(PROMPTS)]}

    def get_prompt(self, call):
        prompt = self.find(PROMPTS, call)
        missing = [name for name in prompt.arguments if call.argument(name) is None]
        if missing:
            raise Refused(INVALID_PARAMS, f"missing: {', '.join(missing)}")
        try:
            return prompt.run(call)
        except Failed as failure:
            raise Refused(INTERNAL, str(failure)) from failure

    def shown(self, entries):
        return [entry for entry in entries if entry.name not in self.hidden]

    def find(self, entries, call):
        name = call.params.get("name")
        for entry in self.shown(entries):
            if entry.name == name:
                return entry
        raise Refused(INVALID_PARAMS, f"there is no {name}")

    def list_resources(self, call):
        return {"resources": RESOURCES}

    def list_templates(self, call):
        return {"resourceTemplates": TEMPLATES}

    def read_resource(self, call):
        uri = call.params.get("uri")
        contents = {
            "test://static-text": {"text": "This is the content of the static text resource."},
            "test://static-binary": {"blob": encoded(png())},
            WATCHED: {"text": f"Changed {self.changes} times."},
        }
        for resource in RESOURCES:
            if resource["uri"] == uri:
                return {"contents": [{"uri": uri, "mimeType": resource["mimeType"], **contents[uri]}]}
        return {"contents": [self.from_template(call, uri)]}

    def from_template(self, call, uri):
        before, after = TEMPLATE.split("{id}")
        number = str(uri).removeprefix(before).removesuffix(after)
        if not number or "/" in number or uri != f"{before}{number}{after}":
            raise call.no_resource(uri)
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        return {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}

    def subscribe(self, call):
        uri = call.params.get("uri")
        if not is_resource(uri):
            raise call.no_resource(uri)
        self.session.watched.add(uri)
        return {}

    def unsubscribe(self, call):
        self.session.watched.discard(call.params.get("uri"))
        return {}

    def listen(self, call):
        """Answers only with notifications, until the client cancels it."""
        wanted = call.params.get("notifications", {})
        accepted = {name: True for name in ("toolsListChanged", "promptsListChanged") if wanted.get(name) is True}
        watched = [uri for uri in wanted.get("resourceSubscriptions", ()) if is_resource(uri)]
        if watched:
            accepted["resourceSubscriptions"] = watched
        meta = {SUBSCRIPTION_KEY: call.id}
        self.notify("notifications/subscriptions/acknowledged", {"notifications": accepted, "_meta": meta})
        self.listeners[call.id] = accepted

    def complete(self, call):
        reference, argument = call.params.get("ref", {}), call.params.get("argument", {})
        known = COMPLETIONS.get((reference.get("name") or reference.get("uri"), argument.get("name")))
        if known is None:
            raise Refused(INVALID_PARAMS, "there is no such argument")
        values = [value for value in known if value.startswith(argument.get("value", ""))]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    def get_task(self, call):
        return self.task_of(call).detail()

    def update_task(self, call):
        self.task_of(call).update(call.responses())
        return {}

    def cancel_task(self, call):
        task = self.task_of(call)
        task.settle("cancelled")
        task.stop()
        return {}

    def task_of(self, call):
        if TASKS not in call.capabilities.get("extensions", {}):
            raise lacking({"extensions": {TASKS: {}}})
        task = self.tasks.get(call.params.get("taskId"))
        if task is None:
            raise Refused(INVALID_PARAMS, "there is no such task")
        return task


def check_meta(meta):
    """Whether a request says who asks."""
    if not isinstance(meta.get(VERSION_KEY), str) or not isinstance(meta.get(CLIENT_KEY), dict):
        raise Refused(INVALID_PARAMS, f"_meta must have {VERSION_KEY} and {CLIENT_KEY}")
    if meta[VERSION_KEY] not in MODERN:
        told = {"supported": list(MODERN), "requested": meta[VERSION_KEY]}
        raise Refused(NO_VERSION, "this version of the protocol is not spoken here", told)
    if meta.get(LEVEL_KEY, LEVELS[0]) not in LEVELS:
        raise Refused(INVALID_PARAMS, f"there is no level {meta[LEVEL_KEY]}")


def is_resource(uri):
    return any(resource["uri"] == uri for resource in RESOURCES)


BEFORE_HANDSHAKE = ("initialize", "ping")
MAY_TAKE_LONG = ("tools/call", "prompts/get")
SHARED_METHODS = {
    "tools/list": Server.list_tools,
    "tools/call": Server.call_tool,
    "prompts/list": Server.list_prompts,
    "prompts/get": Server.get_prompt,
    "resources/list": Server.list_resources,
    "resources/templates/list": Server.list_templates,
    "resources/read": Server.read_resource,
    "completion/complete": Server.complete,
}
LEGACY_METHODS = SHARED_METHODS | {
    "initialize": Server.initialize,
    "ping": Server.ping,
    "logging/setLevel": Server.set_level,
    "resources/subscribe": Server.subscribe,
    "resources/unsubscribe": Server.unsubscribe,
}
MODERN_METHODS = SHARED_METHODS | {
    "server/discover": Server.discover,
    "subscriptions/listen": Server.listen,
    "tasks/get": Server.get_task,
    "tasks/update": Server.update_task,
    "tasks/cancel": Server.cancel_task,
}


if __name__ == "__main__":
    Server(*sys.argv[1:]).run()
