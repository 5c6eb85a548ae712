# Waits for requests to one Python function. A line of JSON each way; what the function prints is no answer.
import importlib
import inspect
import json
import os
import sys


def main():
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def say(message):
        # What the function printed comes before its answer.
        sys.stdout.flush()
        sys.stderr.flush()
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # Only the words of an exception can still hold what is no character.
        replies.write(text.encode("utf-8", "replace") + b"\n")

    def check(message):
        try:
            json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
        except UnicodeEncodeError:
            raise ValueError("the result holds half a surrogate, which is no character of Unicode") from None

    load = json.loads(requests.readline())
    root = load["root"]

    def place(error):
        # The last line of the package itself; where the rest of the machine has its files is nobody's business.
        places = []
        step = error.__traceback__
        while step is not None:
            places.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
            step = step.tb_next
        if isinstance(error, SyntaxError):
            places.append((error.filename, error.lineno))
        for path, number in reversed(places):
            if path and path.startswith(root + os.sep):
                return f"{os.path.relpath(path, root)}:{number}"
        return None

    def fail(error):
        return {"error": {"type": type(error).__name__, "message": str(error), "at": place(error)}}

    if load.get("libraries"):
        sys.path.insert(0, load["libraries"])
    sys.path.insert(0, root)
    module, _, name = load["callable"].partition(":")
    try:
        function = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
    except BaseException as error:
        say(fail(error))
        return
    say({"ready": True})
    variables = ("TRACEPARENT", "TRACESTATE")
    has_own = any(variable in os.environ for variable in variables)

    def belong(told):
        # Where this call belongs among those of others; that of the call before counts no more.
        if not has_own:
            for variable in variables:
                os.environ.pop(variable, None)
            os.environ.update(told)

    for line in requests:
        request = json.loads(line)
        try:
            belong(request.get("trace", {}))
            result = function(request["input"])
            if inspect.isawaitable(result):
                import asyncio

                async def wait():
                    return await result

                result = asyncio.run(wait())
            reply = {"id": request["id"], "result": result}
            check(reply)
        except BaseException as error:
            reply = {"id": request["id"], **fail(error)}
        say(reply)


main()
