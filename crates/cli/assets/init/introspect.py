"""Describes one Python function as JSON: schemas, files, a sample input and, if asked, its result.

Usage: introspect.py MODULE:FUNCTION FOLDER [--call] [--input JSON]
"""

import argparse
import ast
import collections
import dataclasses
import datetime
import decimal
import difflib
import enum
import functools
import importlib
import importlib.util
import inspect
import json
import math
import os
import pathlib
import re
import sys
import types
import typing
import uuid
from collections import abc

FILE_LIMIT = 200
FORMATS = {"datetime": "date-time", "date": "date", "time": "time", "uuid": "uuid"}
SAMPLES = {
    "date-time": "2024-01-01T12:00:00Z", "date": "2024-01-01", "time": "12:00:00Z",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


class Refused(Exception):
    """A reason why no package can be made, in one sentence, with a hint."""

    def __init__(self, error, hint=""):
        super().__init__(error)
        self.hint = hint


class NoJson(Exception):
    """A type that JSON has no form for; its text names the type."""


# @CONVERSION@


# --- schemas ---


class Schemas:
    """Makes the JSON Schemas of one side, input or output; types that contain themselves go to $defs."""

    def __init__(self, output=False):
        self.output, self.defs, self.names, self.recursive = output, {}, {}, set()

    def of(self, hint):
        """The schema of a type hint."""
        hint, note = bare(hint)
        base, args = typing.get_origin(hint) or hint, typing.get_args(hint)
        make = getattr(self, f"of_{family(hint)}", None)
        if make is None:
            raise NoJson(name_of(hint))
        schema = make(base, args)
        return {**schema, "description": note} if note else schema

    def of_any(self, base, args):
        return {}

    def of_none(self, base, args):
        return {"type": "null"}

    def of_string(self, base, args):
        return {"type": "string"}

    def of_boolean(self, base, args):
        return {"type": "boolean"}

    def of_integer(self, base, args):
        return {"type": "integer"}

    def of_number(self, base, args):
        return {"type": "number"}

    def of_moment(self, base, args):
        return {"type": "string", "format": FORMATS[family(base)]}

    of_path, of_decimal = of_string, of_number
    of_datetime = of_date = of_time = of_uuid = of_moment

    def of_union(self, base, args):
        choices = []
        for schema in map(self.of, args):
            choices += [choice for choice in flatten(schema) if choice not in choices]
        return choices[0] if len(choices) == 1 else {"anyOf": choices}

    def of_literal(self, base, args):
        return of_values([enum_form(value) if isinstance(value, enum.Enum) else value for value in args])

    def of_enum(self, base, args):
        return of_values([enum_form(member) for member in base])

    def of_array(self, base, args):
        items = self.of(args[0]) if args else {}
        return {"type": "array", "items": items} if items else {"type": "array"}

    def of_set(self, base, args):
        return {**self.of_array(base, args), "uniqueItems": True}

    def of_tuple(self, base, args):
        if not args or len(args) == 2 and args[1] is Ellipsis:
            return self.of_array(base, args[:1])
        items = [self.of(each) for each in args if each != ()]
        size = {"minItems": len(items), "maxItems": len(items)}
        return {"type": "array", "prefixItems": items, **size} if items else {"type": "array", "maxItems": 0}

    def of_mapping(self, base, args):
        if len(args) != 2:
            return {"type": "object"}
        keys = self.of_keys(args[0])
        return {"type": "object", **({"propertyNames": keys} if keys else {}), "additionalProperties": self.of(args[1]) or True}

    def of_keys(self, hint):
        """The schema of an object's keys; nothing when any string will do."""
        schema = self.of(hint)
        if "enum" in schema:
            return {"enum": [key_to_json(value) for value in schema["enum"]]}
        if schema.get("type") == "integer":
            return {"pattern": "^-?[0-9]+$"}
        if schema and schema.get("type") != "string":
            raise NoJson(f"dict with {name_of(hint)} keys")
        return {"format": schema["format"]} if "format" in schema else {}

    def of_object(self, base, args):
        return self.named(base, lambda: self.fields(base))

    def of_alias(self, base, args):
        return self.named(base, lambda: self.of(base.__value__))

    def of_model(self, base, args):
        """A pydantic model describes itself; its definitions move up to ours."""
        schema = dict(base.model_json_schema(mode="serialization" if self.output else "validation"))
        self.defs.update(schema.pop("$defs", {}))
        return schema

    def named(self, base, build):
        """The schema of a type that may contain itself: in place, or a $ref when it does."""
        if base in self.names:
            self.recursive.add(base)
            return {"$ref": f"#/$defs/{self.names[base]}"}
        taken = {*self.names.values(), *self.defs}
        names = [base.__name__, *(f"{base.__name__}{number}" for number in range(2, len(taken) + 3))]
        self.names[base] = next(name for name in names if name not in taken)
        schema = build()
        if base not in self.recursive:
            del self.names[base]
            return schema
        self.defs[self.names[base]] = schema
        return {"$ref": f"#/$defs/{self.names[base]}"}

    def fields(self, base):
        """The schema of a class with fields."""
        notes, properties, required = parameter_notes(base.__doc__), {}, []
        for name, hint, needed, default in fields_of(base, self.output):
            properties[name] = self.member(hint, MISSING if self.output else default, notes.get(name))
            required += [name] if needed else []
        return object_schema(properties, required, None if self.output else False)

    def member(self, hint, default, note):
        """The schema of a parameter or field, with its default and its description."""
        schema = self.of(hint)
        if default is None and schema and {"type": "null"} not in flatten(schema):
            schema = {"anyOf": [*flatten(schema), {"type": "null"}]}
        try:
            if default is not MISSING:
                value = to_json(default)
                fit("default", value, hint, default)
                schema = {**schema, "default": value}
        except (TypeError, ValueError):
            pass  # a default JSON cannot say: the parameter is just optional
        return {**schema, "description": note} if note and "description" not in schema else schema


def flatten(schema):
    """The choices of a schema that is nothing but a choice, else the schema itself."""
    return schema["anyOf"] if list(schema) == ["anyOf"] else [schema]


def of_values(values):
    """The schema of a fixed set of values."""
    if any(isinstance(value, bytes) for value in values):
        raise NoJson("a Literal of bytes")
    kinds = {type(value) for value in values}
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    kind = names.get(kinds.pop()) if len(kinds) == 1 else None
    return {"type": kind, "enum": values} if kind else {"enum": values}


def object_schema(properties, required, additional):
    """An object's schema; additional None says nothing of other properties."""
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema if additional is None else {**schema, "additionalProperties": additional}


def name_of(hint):
    """A type's name as an author would write it."""
    plain = isinstance(hint, type) and not typing.get_args(hint)
    return hint.__qualname__ if plain else str(hint).replace("typing.", "").replace("collections.abc.", "")


def refuse_type(where, name):
    """The refusal of a type, with what to do instead."""
    hint = "Use str, int, float, bool, list, dict, Literal, an Enum, a TypedDict or a dataclass."
    if name in ("bytes", "bytearray", "memoryview"):
        hint = "Use str, for instance base64 text, and decode or encode it in the function."
    return Refused(f"{where} uses the type {name}, which has no JSON form.", hint)


def input_schema(function, hints):
    """The schema of the function's arguments as one object."""
    schemas, notes, properties, required, additional = Schemas(), parameter_notes(function.__doc__), {}, [], False
    for name, parameter in signature_of(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise Refused(f"The function takes *{name}, and an input object has no place for it.", "Take one list parameter instead.")
        try:
            if parameter.kind is parameter.VAR_KEYWORD:
                additional = schemas.of(hints.get(name, typing.Any)) or True
                continue
            default = MISSING if parameter.default is parameter.empty else parameter.default
            properties[name] = schemas.member(hints.get(name, typing.Any), default, notes.get(name))
        except NoJson as error:
            raise refuse_type(f'The parameter "{name}"', str(error)) from None
        required += [name] if default is MISSING else []
    schema = object_schema(properties, required, additional)
    return {**schema, "$defs": schemas.defs} if schemas.defs else schema


def output_schema(hints):
    """The schema of the result; what an awaitable gives counts, not the awaitable."""
    schemas, hint = Schemas(output=True), hints.get("return", typing.Any)
    if typing.get_origin(hint) in (abc.Awaitable, abc.Coroutine):
        hint = (typing.get_args(hint) or (typing.Any,))[-1]
    if hasattr(hint, "tolist"):
        return {}
    try:
        schema = schemas.of(hint)
    except NoJson as error:
        raise refuse_type("The result", str(error)) from None
    return {**schema, "$defs": schemas.defs} if schemas.defs else schema


# --- docstrings ---

HEADERS = (
    "Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters|Attributes|Returns?|Yields?|Raises"
    "|Examples?|Notes?|See Also|References|Warnings?"
)


def header(lines, index):
    """The section that begins at a line: (its name, whether it is underlined), or None."""
    match = re.fullmatch(rf"\s*({HEADERS})(:?)\s*", lines[index])
    lined = index + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[index + 1]) is not None
    return (match[1], lined) if match and (lined or match[2]) else None


def indent(line):
    """How far a line is indented."""
    return len(line) - len(line.lstrip())


def lead(text):
    """A docstring's text before its sections, fields and examples."""
    lines = inspect.cleandoc(text or "").splitlines()
    for index, line in enumerate(lines):
        if header(lines, index) or re.match(r"\s*(:\w[^:]*:|>>> )", line):
            lines = lines[:index]
            break
    return "\n".join(lines).strip()


def parameter_notes(text):
    """What a docstring in Google, NumPy or Sphinx style says of each parameter."""
    lines, notes = inspect.cleandoc(text or "").splitlines(), {}
    notes.update(field_notes(lines))
    for index in range(len(lines)):
        found = header(lines, index)
        if found and re.match("Arg|Param|Keyword|Other|Attr", found[0]):
            notes.update(section_notes(lines, index, found[1]))
    return {name: " ".join(" ".join(words).split()) for name, words in notes.items() if any(words)}


def field_notes(lines):
    """Sphinx fields, one `:param name: text` each, continued on indented lines."""
    notes, current = {}, None
    for line in lines:
        match = re.match(r"\s*:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)", line)
        if match:
            current = notes[match[1]] = [match[2]]
        elif current and line.startswith(" ") and not re.match(r"\s*:", line):
            current.append(line)
        else:
            current = None
    return notes


def section_notes(lines, start, underlined):
    """A Google or NumPy section: entries at one depth, their text deeper or after the colon."""
    body = lines[start + (2 if underlined else 1):]
    depth = next((indent(line) for line in body if line.strip()), 0)
    entry = r"([*\w]+(?:\s*,\s*[*\w]+)*)\s*(?::.*)?$" if underlined else r"([*\w]+)\s*(?:\(.*?\))?\s*:\s*(.*)"
    notes, current = {}, []
    for offset, line in enumerate(body):
        if line.strip() and (indent(line) < depth or header(body, offset) or not underlined and not depth):
            break
        match = re.match(entry, line.strip()) if line.strip() and indent(line) == depth else None
        if match:
            current = [] if underlined else [match[2]]
            notes.update({name.strip(" *"): current for name in match[1].split(",")})
        else:
            current.append(line)
    return notes


# --- sample input ---


class Endless(Exception):
    """A type that contains itself came round again."""


def sample(schema, defs, filler, seen=()):
    """A small value that satisfies a schema; filler stands where anything goes."""
    if "default" in schema and schema["default"] is not None:
        return schema["default"]
    if "enum" in schema or "const" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "$ref" in schema:
        if schema["$ref"] in seen:
            raise Endless
        return sample(defs[schema["$ref"].rpartition("/")[2]], defs, filler, (*seen, schema["$ref"]))
    if "anyOf" in schema:
        return first_sample(schema["anyOf"], defs, filler, seen)
    kind = schema.get("type")
    if kind == "object":
        return sample_object(schema, defs, filler, seen)
    if kind == "array":
        return sample_array(schema, defs, filler, seen)
    plain = {"string": SAMPLES.get(schema.get("format"), "example"), "integer": 1, "number": 1.5, "boolean": True, "null": None}
    return plain.get(kind, filler)


def first_sample(choices, defs, filler, seen):
    """A sample of the first choice that ends, null last."""
    for choice in sorted(choices, key=lambda choice: choice == {"type": "null"}):
        try:
            return sample(choice, defs, filler, seen)
        except Endless:
            continue
    raise Endless


def sample_object(schema, defs, filler, seen):
    """An object with what is required and what has a default; one entry in an open map."""
    made, required = {}, schema.get("required", [])
    for name, each in schema.get("properties", {}).items():
        if name in required or each.get("default") is not None:
            made[name] = sample(each, defs, filler, seen)
    other, keys = schema.get("additionalProperties"), schema.get("propertyNames", {})
    if isinstance(other, dict) and "properties" not in schema:
        key = "1" if "pattern" in keys else sample({"type": "string", **keys}, defs, filler)
        try:
            made[key] = sample(other, defs, filler, seen)
        except Endless:
            pass
    return made


def sample_array(schema, defs, filler, seen):
    """An array with one element, or with what a tuple needs."""
    if "prefixItems" in schema or schema.get("maxItems") == 0:
        return [sample(each, defs, filler, seen) for each in schema.get("prefixItems", [])]
    try:
        return [sample(schema.get("items", {}), defs, filler, seen)]
    except Endless:
        return []


def doctest_input(function, name):
    """The arguments of the first doctest that calls the function with literals, if any."""
    text = inspect.getdoc(function) or ""
    if ">>>" not in text:
        return None
    import doctest  # here, because it is slow to load
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return None
    for example in examples:
        try:
            calls = [node for node in ast.walk(ast.parse(example.source)) if isinstance(node, ast.Call)]
            found = next((node for node in calls if name in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))), None)
            if found and example.exc_msg is None:
                return bound_input(function, found)
        except (SyntaxError, TypeError, ValueError):
            continue
    return None


def bound_input(function, node):
    """A call's literal arguments as an input object; raises when they do not fit the types."""
    positional = [ast.literal_eval(argument) for argument in node.args]
    named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
    signature = inspect.signature(function)
    bound = signature.bind(*positional, **named).arguments
    for name in [name for name in bound if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD]:
        bound.update(bound.pop(name))
    given = to_json(dict(bound))
    arguments_for(function, given)
    return given


# --- loading ---


def load(target, folder):
    """The module and the function that MODULE:FUNCTION names."""
    module_name, _, path = target.partition(":")
    names = [*module_name.split("."), *path.split(".")]
    if module_name.endswith(".py"):
        stem = module_name[:-3].replace("/", ".").replace("\\", ".").strip(".")
        raise Refused(f'"{target}" names a file, not a module.', f"Write {stem}:{path or 'FUNCTION'}.")
    if not all(name.isidentifier() for name in names):
        raise Refused(f'"{target}" is not of the form module:function.', "For instance calc:add, for the function add in calc.py.")
    sys.path.insert(0, folder)
    sys.argv = [module_name]
    module = import_module(module_name)
    if from_elsewhere(module_name, module, folder):
        raise Refused(f'The file {names[0]}.py is hidden by the Python module of the same name.', "Rename the file.")
    return module, resolve(module, path)


def import_module(name):
    """Imports the module; every way to fail becomes a sentence."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name + ".").startswith(error.name + "."):
            hint = "Name the module as an import would, from its top folder."
            raise Refused(f'There is no module "{error.name}" in the folder.', hint) from None
        hint = "Install what it needs for this Python, or run haft with the Python that has it."
        raise Refused(f"Importing {name} failed: {error}.", hint) from None
    except SystemExit as error:
        hint = 'Put script code under `if __name__ == "__main__":`.'
        raise Refused(f"Importing {name} ended the program (SystemExit: {error}).", hint) from None
    except SyntaxError as error:
        where = f"{os.path.basename(error.filename or name)} line {error.lineno}"
        hint = f"This is Python {sys.version_info[0]}.{sys.version_info[1]}."
        raise Refused(f"Importing {name} failed: {error.msg} in {where}.", hint) from None
    except Exception as error:
        hint = "The module must import without arguments or special surroundings."
        raise Refused(f"Importing {name} failed: {type(error).__name__}: {error}", hint) from None


def from_elsewhere(name, module, folder):
    """Whether a module of the folder exists but another one of the same name was loaded."""
    top = name.partition(".")[0]
    here = os.path.isfile(os.path.join(folder, top + ".py")) or os.path.isfile(os.path.join(folder, top, "__init__.py"))
    return here and not local_paths(sys.modules.get(top, module), folder)


def resolve(module, path):
    """The function at a dotted path in the module."""
    owner = found = module
    for name in path.split("."):
        if not hasattr(found, name):
            raise missing(module, path, found, name)
        owner, found = found, getattr(found, name)
    if isinstance(found, type) or not callable(found):
        what = "a class" if isinstance(found, type) else "not callable"
        raise Refused(f'"{path}" in {module.__name__} is {what}, not a function.', "Name a function.")
    if isinstance(owner, type) and inspect.isfunction(inspect.getattr_static(owner, path.rpartition(".")[2])):
        raise Refused(f'"{path}" is a method that needs an object.', "Name a function, a static method or a class method.")
    return found


def missing(module, path, owner, name):
    """The refusal of a function that is not there, with what is."""
    names = [key for key, value in vars(owner).items() if callable(value) and not isinstance(value, type) and not key.startswith("_")]
    near = difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]}?" if near else f"It has: {', '.join(names[:10])}." if names else "It has no functions."
    return Refused(f'The module {module.__name__} has no function "{path}".', hint)


def signature_of(function):
    """The function's signature."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        raise Refused("The function's parameters cannot be read.", "Wrap it in a Python function with named parameters.") from None


def resolved_hints(function):
    """The function's type hints; one that cannot be resolved is named."""
    try:
        return hints_of(function)
    except Exception as error:
        hint = "Import the names that the type hints use where they exist at run time, not only for type checking."
        raise Refused(f"The type hints cannot be resolved: {error}.", hint) from None


# --- files ---


def local_paths(module, folder):
    """Where a top-level module lies, if directly in the folder: its file or its package folders."""
    known = getattr(module, "__dict__", {})
    paths = known.get("__path__") or [known.get("__file__")]
    real = [os.path.realpath(path) for path in paths if isinstance(path, str)]
    return [path for path in real if os.path.dirname(path) == os.path.realpath(folder)]


def local_files(folder):
    """The source files of every loaded module that lies in the folder, relative to it, and what is left out."""
    files, warnings = set(), []
    for name, module in list(sys.modules.items()):
        for path in local_paths(module, folder) if "." not in name and name != "__main__" else ():
            found = list(python_files(path)) if os.path.isdir(path) else [path]
            warnings += [f"{os.path.basename(path)} is not Python source and is not copied" for path in found if not path.endswith(".py")]
            files.update(os.path.relpath(path, os.path.realpath(folder)).replace(os.sep, "/") for path in found if path.endswith(".py"))
    if len(files) > FILE_LIMIT:
        raise Refused(f"The module has {len(files)} source files, more than {FILE_LIMIT}.", "Put the function into a smaller package.")
    return sorted(files), warnings


def python_files(folder):
    """All Python source files beneath a package folder, hidden folders and caches aside."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        yield from (os.path.join(parent, name) for name in names if name.endswith(".py"))


def packages_of(files, folder, target):
    """The installed distributions that the target module and the files come from or import."""
    names = {target.partition(".")[0]}
    for file in files:
        with open(os.path.join(folder, file), "rb") as source:
            for node in ast.walk(ast.parse(source.read())):
                if isinstance(node, ast.Import):
                    names.update(alias.name.partition(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names.add(node.module.partition(".")[0])
    names = {name for name in names if is_installed(name)}
    owners = {}
    if names:
        import importlib.metadata  # here, because it is slow to load
        owners = getattr(importlib.metadata, "packages_distributions", dict)()
    return sorted({owners.get(name, [name])[0] for name in names})


def is_installed(name):
    """Whether a module comes from an installed package, not from Python itself or the folder."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    places = [spec.origin or "", *(spec.submodule_search_locations or [])] if spec else []
    return any(part in ("site-packages", "dist-packages") for place in places for part in pathlib.PurePath(place).parts)


# --- the report ---


def try_call(function, given):
    """The outcome of calling twice: the result and whether it repeats, or the error."""
    try:
        result = call(function, given)
    except (Exception, SystemExit) as error:
        return {"call_error": f"{type(error).__name__}: {error}"}
    try:
        again = call(function, given)
    except (Exception, SystemExit):
        return {"result": result, "deterministic": False}
    return {"result": result, "deterministic": result == again}


def attempts(function, name, schema, given):
    """The sample inputs to try, best first: the caller's, a doctest's, or made from the schema."""
    if given is not None:
        return [given]
    example = doctest_input(function, name)
    if example is not None:
        return [example]
    defs = schema.get("$defs", {})
    try:
        made = [sample_object({**schema, "additionalProperties": False}, defs, filler, ()) for filler in ("example", 1)]
    except Endless:
        raise Refused("No sample input can be made: a type contains itself without end.", "Make the inner one optional.") from None
    return made if made[0] != made[1] else made[:1]


def describe(options):
    """The whole report on one function."""
    folder = os.path.abspath(options.folder)
    module, function = load(options.target, folder)
    path = options.target.partition(":")[2]
    signature_of(function)
    hints, text = resolved_hints(function), lead(getattr(function, "__doc__", None))
    schema, results = input_schema(function, hints), output_schema(hints)
    name = path.rpartition(".")[2]
    tries = attempts(function, name, schema, read_object(options.input))
    given, outcome = tries[0], {}
    if options.call:
        outcomes = [(each, try_call(function, each)) for each in tries[:1]]
        outcomes += [(each, try_call(function, each)) for each in tries[1:] if "call_error" in outcomes[0][1]]
        given, outcome = next((pair for pair in outcomes if "result" in pair[1]), outcomes[0])
    files, warnings = local_files(folder)
    return {
        "ok": True, "name": name, "module": module.__name__, "function": path, "files": files,
        "packages": packages_of(files, folder, module.__name__), "warnings": warnings,
        "summary": text.partition("\n")[0], "description": text,
        "input_schema": schema, "output_schema": results, "sample_input": given, **outcome,
    }


def read_object(text):
    """The input object given on the command line, if any."""
    try:
        given = json.loads(text) if text is not None else None
    except ValueError:
        given = text
    if given is not None and not isinstance(given, dict):
        raise Refused("The value of --input is not a JSON object.", 'For instance --input \'{"a": 1}\'.')
    return given


def read_options():
    """The command line; a wrong one is a refusal like any other."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("target")
    parser.add_argument("folder")
    parser.add_argument("--call", action="store_true")
    parser.add_argument("--input")

    def refuse(message):
        raise Refused(f"The command line is wrong: {message}.")

    parser.error = refuse
    return parser.parse_args()


def report():
    """The report, or the reason why there is none."""
    try:
        return describe(read_options())
    except Refused as error:
        return {"ok": False, "error": str(error), "hint": error.hint}
    except (Exception, SystemExit) as error:
        return {"ok": False, "error": f"The function cannot be described: {type(error).__name__}: {error}", "hint": ""}


def main():
    """Keeps stdout for the report: whatever the module prints goes to stderr, and stdin is empty."""
    sys.dont_write_bytecode = True
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(2, 1)
    with open(os.devnull) as empty:
        os.dup2(empty.fileno(), 0)
    sys.stdout = sys.stderr
    made = report()
    print(json.dumps(made, ensure_ascii=False, allow_nan=False), file=out, flush=True)
    sys.stderr.flush()
    os._exit(0 if made["ok"] else 1)  # at once, whatever threads the module has started


if __name__ == "__main__":
    main()
