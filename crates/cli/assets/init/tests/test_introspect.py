"""Tests of the scripts behind `haft init`: what they report, and that the runner gives the same result."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent.parent
NODE = shutil.which("node")
SHARED = {"# @CONVERSION@": "conversion.py", "// @CALLING@": "calling.mjs"}
TYPES = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None), "array": list, "object": dict,
}


def satisfies(value, schema, defs=None):
    """Whether a value satisfies a schema, as far as the scripts use JSON Schema."""
    defs = schema.get("$defs", {}) if defs is None else defs
    if schema is True or schema == {}:
        return True
    if "$ref" in schema and not satisfies(value, defs[schema["$ref"].rpartition("/")[2]], defs):
        return False
    if "anyOf" in schema and not any(satisfies(value, each, defs) for each in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or isinstance(value, bool) and kind in ("integer", "number")):
        return False
    if isinstance(value, list):
        return satisfies_array(value, schema, defs)
    return not isinstance(value, dict) or satisfies_object(value, schema, defs)


def satisfies_array(value, schema, defs):
    """The part of `satisfies` for arrays."""
    prefix = schema.get("prefixItems", [])
    rest = [schema.get("items", {})] * max(0, len(value) - len(prefix))
    sized = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
    return sized and all(satisfies(each, inner, defs) for each, inner in zip(value, [*prefix, *rest]))


def satisfies_object(value, schema, defs):
    """The part of `satisfies` for objects."""
    known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    if not all(name in value for name in schema.get("required", [])):
        return False
    inner = {name: known.get(name, other) for name in value}
    return all(inner[name] is not False and satisfies(each, inner[name], defs) for name, each in value.items())


def script(name):
    """The text of a script, with the shared block in its place, as haft puts it together."""
    text = (HERE / name).read_text(encoding="utf-8")
    for mark, block in SHARED.items():
        text = text.replace(mark, (HERE / block).read_text(encoding="utf-8").rstrip())
    return text


class Case(unittest.TestCase):
    """A folder of its own for each test, and the ways to run the scripts in it."""

    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)

    def write(self, name, text):
        path = self.folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    def script(self, name):
        """The path of a script, written beside the folder of the tool."""
        path = self.folder / "scripts" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(script(name), encoding="utf-8")
        return str(path)

    def report(self, *command, valid=True):
        """The one JSON object a script prints, checked for what holds of every report."""
        done = subprocess.run(command, cwd=self.folder, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.stdout.count("\n"), 1, done)
        made = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if made["ok"] else 1)
        if made["ok"] and valid:
            self.assertTrue(satisfies(made["sample_input"], made["input_schema"]), made)
            self.assertTrue("result" not in made or satisfies(made["result"], made["output_schema"]), made)
        if not made["ok"]:
            self.assertEqual(set(made), {"ok", "error", "hint"})
        return made

    def assertRefused(self, made, *words):
        self.assertFalse(made["ok"], made)
        for word in words:
            self.assertIn(word, f"{made['error']} | {made['hint']}")

    def package(self, made, template, values):
        """Copies the reported files and writes the runner beside them, as haft does."""
        target = self.folder / "package"
        for file in made["files"]:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.folder / "src" / file, target / file)
        text = script(template)
        for key, value in values.items():
            text = text.replace(f"@{key}@", value)
        (target / template).write_text(text, encoding="utf-8")
        return str(target / template)

    def run_tool(self, *command, stdin=""):
        return subprocess.run(command, cwd=self.folder, capture_output=True, encoding="utf-8", input=stdin, timeout=60)

    def assertRuns(self, made, *command):
        """The runner gives the reported result."""
        done = self.run_tool(*command, json.dumps(made["sample_input"]))
        self.assertEqual((done.returncode, done.stdout.count("\n")), (0, 1), done)
        self.assertEqual(json.loads(done.stdout), made["result"])


class Python(Case):
    """introspect.py and run.py."""

    def python(self, source, function="f", *options, module="tool", **more):
        if source is not None:
            self.write(module.replace(".", "/") + ".py", source)
        return self.introspect(f"{module}:{function}", "src", *options, **more)

    def introspect(self, *arguments, **more):
        return self.report(sys.executable, "-S", self.script("introspect.py"), *arguments, **more)

    def runner(self, made):
        return sys.executable, "-S", self.package(made, "run.py", {"MODULE": made["module"], "FUNCTION": made["function"]})

    def called(self, source, function="f", *options, **more):
        """Introspects with a call, which must work, and runs the tool to the same result."""
        made = self.python(source, function, "--call", *options, **more)
        self.assertIn("result", made)
        self.assertRuns(made, *self.runner(made))
        return made

    def properties(self, source, function="f"):
        return self.python(source, function)["input_schema"]["properties"]

    def test_plain_types(self):
        made = self.called("""
            def f(a: str, b: int, c: float, d: bool = False, e: None = None) -> float:
                '''Does it.

                And more.
                '''
                return b + c
        """)
        schema = {
            "type": "object",
            "properties": {
                "a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "number"},
                "d": {"type": "boolean", "default": False}, "e": {"type": "null", "default": None},
            },
            "required": ["a", "b", "c"],
            "additionalProperties": False,
        }
        self.assertEqual(made["input_schema"], schema)
        self.assertEqual(made["output_schema"], {"type": "number"})
        self.assertEqual((made["name"], made["module"], made["files"]), ("f", "tool", ["tool.py"]))
        self.assertEqual((made["summary"], made["description"]), ("Does it.", "Does it.\n\nAnd more."))
        self.assertEqual(made["sample_input"], {"a": "example", "b": 1, "c": 1.5, "d": False})
        self.assertEqual((made["result"], made["deterministic"]), (2.5, True))
        done = self.run_tool(*self.runner(made), "not JSON", stdin=json.dumps(made["sample_input"]))
        self.assertEqual(done.stdout, "2.5\n")

    def test_containers(self):
        made = self.called("""
            from typing import Dict, Iterable, List, Sequence, Set, Tuple
            def f(a: List[int], b: Tuple[int, str], c: Tuple[int, ...], d: Set[str], e: Sequence[bool], g: Dict[str, float],
                  h: list, i: dict, j: Iterable[int], k: Dict[int, str]) -> Dict[str, list]:
                assert isinstance(b, tuple) and isinstance(d, set) and list(k) == [1]
                return {"set": sorted(d), "ints": list(j)}
        """)
        found = made["input_schema"]["properties"]
        self.assertEqual(found["a"], {"type": "array", "items": {"type": "integer"}})
        self.assertEqual(found["b"]["prefixItems"], [{"type": "integer"}, {"type": "string"}])
        self.assertEqual((found["b"]["minItems"], found["b"]["maxItems"]), (2, 2))
        self.assertEqual(found["c"], {"type": "array", "items": {"type": "integer"}})
        self.assertTrue(found["d"]["uniqueItems"])
        self.assertEqual(found["g"], {"type": "object", "additionalProperties": {"type": "number"}})
        self.assertEqual((found["h"], found["i"]), ({"type": "array"}, {"type": "object"}))
        self.assertEqual(made["sample_input"]["k"], {"1": "example"})

    def test_unions_and_literals(self):
        found = self.properties("""
            from typing import Any, Literal, Optional, Union
            def f(a: Optional[str], b: Union[int, str, None], c: Literal["x", "y"], d: Any, e: Literal[1, "a"], g: int = None): ...
        """)
        self.assertEqual(found["a"], {"anyOf": [{"type": "string"}, {"type": "null"}]})
        self.assertEqual(found["b"], {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]})
        self.assertEqual(found["c"], {"type": "string", "enum": ["x", "y"]})
        self.assertEqual((found["d"], found["e"]), ({}, {"enum": [1, "a"]}))
        self.assertEqual(found["g"], {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None})

    @unittest.skipIf(sys.version_info < (3, 10), "the | of types is newer")
    def test_bar_union(self):
        found = self.properties("def f(a: int | None, b: list[str] | dict[str, int]): ...")
        self.assertEqual(found["a"], {"anyOf": [{"type": "integer"}, {"type": "null"}]})
        self.assertEqual(len(found["b"]["anyOf"]), 2)

    @unittest.skipIf(sys.version_info < (3, 12), "type statements are newer")
    def test_type_statement(self):
        made = self.called("type Json = dict[str, Json] | list[Json] | str\ndef f(a: Json) -> Json: return a")
        self.assertEqual(made["input_schema"]["properties"]["a"], {"$ref": "#/$defs/Json"})

    def test_enum_dates_and_paths(self):
        made = self.called("""
            import datetime, decimal, enum, uuid
            from pathlib import Path
            class Color(enum.Enum):
                RED = "red"
                BLUE = "blue"
            class Odd(enum.Enum):
                A = (1, 2)
            def f(c: Color, o: Odd, day: datetime.date, at: datetime.datetime, p: Path, u: uuid.UUID, d: decimal.Decimal,
                  again: Color = Color.BLUE) -> dict:
                assert isinstance(u, uuid.UUID) and isinstance(p, Path) and o is Odd.A and at.tzinfo and isinstance(d, decimal.Decimal)
                return {"color": c, "year": day.year, "p": p / "x", "day": day, "d": d, c: 1}
        """)
        found = made["input_schema"]["properties"]
        self.assertEqual(found["c"], {"type": "string", "enum": ["red", "blue"]})
        self.assertEqual(found["again"]["default"], "blue")
        self.assertEqual(found["o"], {"type": "string", "enum": ["A"]})
        self.assertEqual((found["day"]["format"], found["at"]["format"], found["u"]["format"]), ("date", "date-time", "uuid"))
        self.assertEqual(found["p"], {"type": "string"})
        self.assertEqual(made["result"], {"color": "red", "year": 2024, "p": "example/x", "day": "2024-01-01", "d": 1.5, "red": 1})

    def test_keys_that_are_not_strings(self):
        made = self.called("""
            import enum
            from typing import Dict
            class Level(enum.IntEnum):
                LOW = 1
            def f(d: Dict[Level, int]) -> Dict[Level, int]:
                assert list(d) == [Level.LOW]
                return d
        """)
        self.assertEqual(made["input_schema"]["properties"]["d"]["propertyNames"], {"enum": ["1"]})
        self.assertEqual(made["result"], {"1": 1})

    def test_typed_dict(self):
        made = self.called("""
            from __future__ import annotations
            from typing import Optional, TypedDict
            class Base(TypedDict):
                name: str
            class Item(Base, total=False):
                size: int
            def f(item: Item) -> Item:
                return {"name": item["name"].upper()}
        """)
        item = made["input_schema"]["properties"]["item"]
        self.assertEqual((item["required"], item["additionalProperties"]), (["name"], False))
        self.assertEqual(made["output_schema"]["required"], ["name"])
        self.assertNotIn("additionalProperties", made["output_schema"])

    @unittest.skipIf(sys.version_info < (3, 11), "the markers are newer")
    def test_typed_dict_markers(self):
        found = self.properties("""
            from __future__ import annotations
            from typing import Annotated, NotRequired, Required, TypedDict
            class Item(TypedDict, total=False):
                a: Required[int]
                b: NotRequired[Annotated[int, "the b"]]
            def f(item: Item): ...
        """)
        self.assertEqual(found["item"]["required"], ["a"])
        self.assertEqual(found["item"]["properties"]["b"], {"type": "integer", "description": "the b"})

    def test_dataclass_and_named_tuple(self):
        made = self.called("""
            import dataclasses
            from typing import List, NamedTuple
            class Point(NamedTuple):
                x: int
                y: int = 0
            @dataclasses.dataclass
            class Shape:
                '''A shape.

                Attributes:
                    name: What it is called.
                '''
                name: str
                points: List[Point]
                tags: List[str] = dataclasses.field(default_factory=list)
                size: int = dataclasses.field(init=False, default=0)
                def __post_init__(self):
                    self.size = len(self.points)
            def f(shape: Shape) -> Shape:
                return shape
        """)
        shape = made["input_schema"]["properties"]["shape"]
        self.assertEqual(shape["required"], ["name", "points"])
        self.assertNotIn("size", shape["properties"])
        self.assertEqual(shape["properties"]["name"]["description"], "What it is called.")
        self.assertEqual(shape["properties"]["points"]["items"]["required"], ["x"])
        self.assertEqual(made["output_schema"]["required"], ["name", "points", "tags", "size"])
        self.assertEqual(made["result"], {"name": "example", "points": [{"x": 1, "y": 0}], "tags": [], "size": 1})

    def test_recursive_type(self):
        made = self.called("""
            from __future__ import annotations
            import dataclasses
            from typing import List, Optional
            @dataclasses.dataclass
            class Node:
                value: int
                next: Optional[Node]
                kids: List[Node] = dataclasses.field(default_factory=list)
            def f(node: Node) -> Node:
                return Node(2, node)
        """)
        self.assertEqual(made["input_schema"]["properties"]["node"], {"$ref": "#/$defs/Node"})
        self.assertEqual(made["input_schema"]["$defs"]["Node"]["required"], ["value", "next"])
        self.assertEqual(made["sample_input"], {"node": {"value": 1, "next": None}})
        self.assertIn("Node", made["output_schema"]["$defs"])

    def test_annotated_and_docstring_styles(self):
        found = self.properties('''
            from typing import Annotated
            def f(a: Annotated[int, "by hint"], b: int, c: int):
                """Google.

                Args:
                    a: By docstring.
                    b (int): The b,
                        on two lines.
                    c: The c: with a colon.

                Returns:
                    Nothing.
                """
        ''')
        self.assertEqual([each["description"] for each in found.values()], ["by hint", "The b, on two lines.", "The c: with a colon."])
        found = self.properties('''
            def g(a: int, b: int, c: int = 1):
                """NumPy.

                Parameters
                ----------
                a, b : int
                    Both of them.
                c : int, optional
                    The third.

                Returns
                -------
                int
                    The sum.
                """
        ''', "g")
        self.assertEqual([each["description"] for each in found.values()], ["Both of them.", "Both of them.", "The third."])
        found = self.properties('''
            def h(a: int, b: int):
                """Sphinx.

                :param a: The a,
                    continued.
                :param int b: The b.
                :returns: The sum.
                """
        ''', "h")
        self.assertEqual([each["description"] for each in found.values()], ["The a, continued.", "The b."])

    def test_doctest_gives_the_sample(self):
        made = self.called('''
            def f(a: int, b: int = 5, *, names: tuple = ()) -> int:
                """Adds.

                >>> x = 3
                >>> f(x, 1)
                4
                >>> f("no", 1)
                Traceback (most recent call last):
                TypeError: no
                >>> print(f(3, b=4, names=("a",)))
                7
                """
                return a + b
        ''')
        self.assertEqual(made["sample_input"], {"a": 3, "b": 4, "names": ["a"]})
        self.assertEqual((made["result"], made["description"]), (7, "Adds."))

    def test_input_option(self):
        source = "def f(a: int, b: int = 1) -> int: return a * b"
        made = self.called(source, "f", "--input", '{"a": 6, "b": 7}')
        self.assertEqual((made["sample_input"], made["result"]), ({"a": 6, "b": 7}, 42))
        self.assertRefused(self.python(source, "f", "--input", "[1]"), "--input")

    def test_untyped_parameters(self):
        made = self.called("def f(text, times=2): return text.upper() * times")
        self.assertEqual(made["input_schema"]["properties"], {"text": {}, "times": {"default": 2}})
        self.assertEqual((made["output_schema"], made["result"]), ({}, "EXAMPLEEXAMPLE"))
        made = self.called("def f(x): return x * x")
        self.assertEqual((made["sample_input"], made["result"]), ({"x": 1}, 1))

    def test_keyword_and_positional_only(self):
        made = self.called("def f(a, b=2, /, *, c: int, **more): return [a, b, c, more]", "f", "--input", '{"a": 1, "c": 3, "z": 4}')
        self.assertIs(made["input_schema"]["additionalProperties"], True)
        self.assertEqual(made["result"], [1, 2, 3, {"z": 4}])
        self.assertRefused(self.python("def f(*args): ..."), "*args", "list")

    def test_defaults_json_cannot_say(self):
        made = self.called("def f(a: float = float('inf'), b: object = object(), c: str = 5) -> int: return 1")
        self.assertEqual(made["input_schema"]["properties"], {"a": {"type": "number"}, "b": {}, "c": {"type": "string"}})
        self.assertEqual(made["sample_input"], {})

    def test_async_functions(self):
        made = self.called("""
            import asyncio
            async def f(a: int) -> int:
                await asyncio.sleep(0)
                return a + 1
        """)
        self.assertEqual((made["output_schema"], made["result"]), ({"type": "integer"}, 2))
        made = self.called("""
            from typing import AsyncIterator
            async def f(n: int) -> AsyncIterator[int]:
                for each in range(n):
                    yield each
        """)
        self.assertEqual((made["output_schema"]["type"], made["result"]), ("array", [0]))

    def test_generators_and_sets_are_arrays(self):
        made = self.called("from typing import Iterator\ndef f() -> Iterator[str]:\n    yield 'a'")
        self.assertEqual((made["output_schema"], made["result"]), ({"type": "array", "items": {"type": "string"}}, ["a"]))
        self.assertEqual(self.called("def f(): return {10, 9, 2}")["result"], [2, 9, 10])

    def test_decorated_dotted_and_partial(self):
        source = """
            import functools
            def plain(function):
                @functools.wraps(function)
                def inner(*args, **kwargs):
                    return function(*args, **kwargs)
                return inner
            class Box:
                @staticmethod
                @plain
                def f(a: int) -> int:
                    return a + 1
                def method(self): ...
            @functools.lru_cache
            def cached(a: int) -> int:
                return a
            def pair(a: int, b: int) -> int:
                return a * b
            twice = functools.partial(pair, 2)
        """
        made = self.called(source, "Box.f")
        self.assertEqual((made["name"], made["function"], made["result"]), ("f", "Box.f", 2))
        self.assertEqual(self.called(source, "cached")["result"], 1)
        made = self.called(source, "twice")
        self.assertEqual((made["input_schema"]["properties"], made["result"]), ({"b": {"type": "integer"}}, 2))
        self.assertRefused(self.python(source, "Box.method"), "needs an object")
        self.assertRefused(self.python(source, "Box"), "a class")

    def test_prints_do_not_corrupt_stdout(self):
        made = self.called("""
            import os, sys
            print("import noise")
            os.system("echo child noise")
            def f(a: int) -> int:
                print("call noise")
                os.write(1, b"raw noise\\n")
                sys.__stdout__.write("more noise")
                return a
        """)
        self.assertEqual(made["result"], 1)
        given = json.dumps(made["sample_input"])
        self.assertIn("call noise", self.run_tool(*self.runner(made), given).stderr)

    def test_files_of_siblings_and_packages(self):
        self.write("helper.py", "def add(a, b): return a + b")
        self.write("unused.py", "")
        made = self.called("import helper\ndef f(a: int) -> int: return helper.add(a, 1)")
        self.assertEqual(made["files"], ["helper.py", "tool.py"])
        self.write("pkg/__init__.py", "")
        self.write("pkg/deep/__init__.py", "")
        self.write("pkg/deep/late.py", "X = 4")
        self.write("pkg/__pycache__/x.py", "")
        made = self.called("from .deep import late\ndef f() -> int: return late.X", module="pkg.mod")
        self.assertEqual(made["files"], ["pkg/__init__.py", "pkg/deep/__init__.py", "pkg/deep/late.py", "pkg/mod.py"])
        self.assertFalse((self.folder / "src/__pycache__").exists())

    def test_too_many_files(self):
        self.write("pkg/__init__.py", "")
        for number in range(199):
            self.write(f"pkg/m{number}.py", "")
        self.assertRefused(self.python("def f(): ...", module="pkg.tool"), "201", "200")

    def test_installed_and_hidden_modules(self):
        made = self.python(None, "dumps", module="json")
        self.assertEqual((made["ok"], made["files"], made["packages"]), (True, [], []))
        self.assertRefused(self.python("def f(): ...", module="json"), "json.py", "Rename")

    def test_nothing_random_passes_as_deterministic(self):
        made = self.python("import random\ndef f() -> float: return random.random()", "f", "--call")
        self.assertIs(made["deterministic"], False)
        made = self.python("seen = []\ndef f() -> int:\n    seen.append(1)\n    return 1 // (len(seen) < 2)", "f", "--call")
        self.assertEqual((made["result"], made["deterministic"]), (1, False))

    def test_call_errors(self):
        made = self.python("def f(a: int): raise ValueError('bad luck')", "f", "--call")
        self.assertEqual(made["call_error"], "ValueError: bad luck")
        self.assertNotIn("result", made)
        self.assertNotIn("deterministic", made)
        self.assertIn("TypeError: a value of type object", self.python("def f(): return object()", "f", "--call")["call_error"])
        self.assertIn("nan", self.python("def f(): return float('nan')", "f", "--call")["call_error"])
        self.assertIn("bytes", self.python("def f(): return b'x'", "f", "--call")["call_error"])
        self.assertIn("SystemExit", self.python("import sys\ndef f(): sys.exit(3)", "f", "--call")["call_error"])
        made = self.python("def f(a: int) -> int: return a", "f", "--call", "--input", '{"a": "x"}', valid=False)
        self.assertEqual(made["call_error"], 'ValueError: argument "a": "x" is not an integer')

    def test_types_without_json_form(self):
        self.assertRefused(self.python("def f(data: bytes): ..."), '"data"', "bytes", "base64")
        self.assertRefused(self.python("def f() -> bytes: ..."), "The result", "bytes")
        self.assertRefused(self.python("from typing import Callable\ndef f(g: Callable[[], int]): ..."), '"g"', "Callable")
        self.assertRefused(self.python("class Own: ...\ndef f(own: Own): ..."), '"own"', "Own")
        self.assertRefused(self.python("from typing import Dict, Tuple\ndef f(d: Dict[Tuple[int], int]): ..."), "keys")

    def test_names_that_are_not_there(self):
        self.assertRefused(self.python(None, module="nowhere"), 'no module "nowhere"')
        self.assertRefused(self.python("def add(): ...", "ad"), 'no function "ad"', "Did you mean add?")
        self.assertRefused(self.python("add = 3", "add"), "not callable")
        self.assertRefused(self.introspect("tool.py:f", "src"), "tool:f")
        self.assertRefused(self.introspect("tool", "src"), "module:function")
        self.assertRefused(self.introspect("tool:f"), "command line")

    def test_imports_that_fail(self):
        self.assertRefused(self.python("1 / 0"), "ZeroDivisionError")
        self.assertRefused(self.python("import not_there_at_all"), "not_there_at_all", "Install")
        self.assertRefused(self.python("def f(:"), "tool.py line 1")
        self.assertRefused(self.python("import sys; sys.exit(2)"), "SystemExit", "__main__")
        self.assertRefused(self.python("def f(a: 'Gone'): ..."), "type hints", "Gone")

    def test_threads_do_not_hold_the_report(self):
        made = self.python("import threading, time\nthreading.Thread(target=time.sleep, args=(50,)).start()\ndef f(): ...")
        self.assertTrue(made["ok"])

    def test_self_describing_models(self):
        made = self.called("""
            class Model:
                @classmethod
                def model_json_schema(cls, mode):
                    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"], "$defs": {"A": {"type": "integer"}}}
                @classmethod
                def model_validate(cls, value):
                    made = cls()
                    made.a = value["a"]
                    return made
                def model_dump(self, mode):
                    return {"a": self.a}
            def f(m: Model) -> Model:
                return m
        """)
        self.assertEqual((made["input_schema"]["$defs"], made["result"]), ({"A": {"type": "integer"}}, {"a": 1}))

    def test_runner_failures(self):
        made = self.called("""
            import datetime
            def f(day: datetime.date, n: int = 1) -> int:
                if n == 0:
                    raise KeyError("zero\\nlines")
                return day.year
        """)
        command = self.runner(made)
        for given, error in (
            ('{"day": "2024-01-01", "n": 0}', "KeyError: "),
            ('{"day": "soon"}', 'ValueError: argument "day"'),
            ('{"day": "2024-01-01", "n": true}', "true is not an integer"),
            ("{}", 'argument "day" is missing'),
            ('{"day": "2024-01-01", "x": 1}', 'unexpected argument "x"'),
            ("[1]", "not a JSON object"),
            ("nonsense", "JSONDecodeError"),
        ):
            done = self.run_tool(*command, stdin=given)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done)
            self.assertIn(error, json.loads(done.stderr)["error"])

    def test_runner_leaves_the_package_as_it_is(self):
        made = self.called("def f(text: str = 'é ☃') -> str: return text")
        self.assertEqual(made["result"], "é ☃")
        self.assertEqual(sorted(path.name for path in (self.folder / "package").iterdir()), ["run.py", "tool.py"])


@unittest.skipUnless(NODE, "node is not installed")
class Node(Case):
    """introspect.mjs and run.mjs."""

    def node(self, source, *options, file="tool.mjs"):
        if source is not None:
            self.write(file, source)
        return self.report(NODE, self.script("introspect.mjs"), f"src/{file}", *options)

    def runner(self, made):
        values = {"FILE": made["file"], "EXPORT": made["export"], "CALL": json.dumps(made["call"])}
        path = self.package(made, "run.mjs", values)
        (pathlib.Path(path).parent / "package.json").write_text(json.dumps({"type": made["type"]}))
        return NODE, path

    def called(self, source, *options, **more):
        made = self.node(source, "--call", *options, **more)
        self.assertIn("result", made)
        self.assertRuns(made, *self.runner(made))
        return made

    def properties(self, tags, parameters):
        """The input properties of a function with the given doc tags and parameters."""
        lines = "\n".join(f" * {tag}" for tag in tags)
        return self.node(f"/**\n{lines}\n */\nexport function f({parameters}) {{}}\n")["input_schema"]["properties"]

    def test_documented_function(self):
        made = self.called("""
            /**
             * Adds two numbers.
             *
             * And more.
             * @param {number} a - The first.
             * @param {number} [b=2] The second,
             *   on two lines.
             * @returns {Promise<number>} The sum.
             */
            export async function add(a, b) { return a + (b ?? 2); }
        """)
        schema = {
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "The first."},
                "b": {"type": "number", "default": 2, "description": "The second, on two lines."},
            },
            "required": ["a"],
            "additionalProperties": False,
        }
        self.assertEqual(made["input_schema"], schema)
        self.assertEqual(made["output_schema"], {"type": "number", "description": "The sum."})
        self.assertEqual((made["summary"], made["description"]), ("Adds two numbers.", "Adds two numbers.\n\nAnd more."))
        self.assertEqual((made["name"], made["module"], made["file"], made["export"]), ("add", "tool", "tool.mjs", "add"))
        self.assertEqual((made["files"], made["root"], made["type"]), (["tool.mjs"], ".", "module"))
        self.assertEqual(made["call"], {"style": "positional", "names": ["a", "b"]})
        self.assertEqual((made["sample_input"], made["result"], made["deterministic"]), ({"a": 1, "b": 2}, 3, True))
        done = self.run_tool(*self.runner(made), "not JSON", stdin=json.dumps(made["sample_input"]))
        self.assertEqual(done.stdout, "3\n")

    def test_types(self):
        text, number, null = {"type": "string"}, {"type": "number"}, {"type": "null"}
        cases = {
            "string|number": {"anyOf": [text, number]},
            "(string|number)[]": {"type": "array", "items": {"anyOf": [text, number]}},
            "string[]": {"type": "array", "items": text},
            "Array<string>": {"type": "array", "items": text},
            "Array.<string>": {"type": "array", "items": text},
            "Object<string, number>": {"type": "object", "additionalProperties": number},
            "Record<string, boolean[]>": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}},
            "'a'|\"b\"": {"type": "string", "enum": ["a", "b"]},
            "1|-2|null": {"anyOf": [{"type": "integer", "enum": [1, -2]}, null]},
            "?string": {"anyOf": [text, null]},
            "!string": text,
            "*": {},
            "any": {},
            "object": {"type": "object"},
            "[string, number]": {"type": "array", "prefixItems": [text, number], "minItems": 2, "maxItems": 2},
            "Date": {"type": "string", "format": "date-time"},
            "integer": {"type": "integer"},
            "string|undefined": text,
            "[]": {"type": "array", "maxItems": 0},
            "{a: string} & {a: string, b: number}": {
                "type": "object", "properties": {"a": text, "b": number}, "required": ["a", "b"], "additionalProperties": False,
            },
        }
        names = [f"p{index}" for index in range(len(cases))]
        found = self.properties([f"@param {{{written}}} {name}" for name, written in zip(names, cases)], ", ".join(names))
        for name, written in zip(names, cases):
            with self.subTest(written):
                self.assertEqual(found[name], cases[written])

    def test_inline_objects(self):
        found = self.properties(["@param {{a: string, b?: number, 'c-d': {e: boolean}[]}} x", "@param {number=} y"], "x, y")
        self.assertEqual(found["x"]["required"], ["a", "c-d"])
        self.assertEqual(found["x"]["properties"]["b"], {"type": "number"})
        self.assertEqual(found["x"]["properties"]["c-d"]["items"]["required"], ["e"])
        self.assertEqual(found["y"], {"type": "number"})

    def test_typedefs_and_recursion(self):
        self.write("types.js", """
            /**
             * @typedef {Object} Node
             * @property {number} value - The number.
             * @property {Node[]} [kids]
             */
            /** @typedef {'up' | 'down'} Way */
        """)
        made = self.called("""
            /** @typedef {import('./types.js').Node} Node */
            /**
             * @param {Node} node
             * @param {import("./types.js").Way} way
             * @returns {Node}
             */
            export const wrap = (node, way) => ({ value: 2, kids: [node] });
        """)
        found = made["input_schema"]
        self.assertEqual(found["properties"], {"node": {"$ref": "#/$defs/Node"}, "way": {"type": "string", "enum": ["up", "down"]}})
        self.assertEqual(found["$defs"]["Node"]["required"], ["value"])
        self.assertEqual(made["files"], ["tool.mjs", "types.js"])
        self.assertEqual(made["result"], {"value": 2, "kids": [{"value": 1}]})

    def test_object_parameter_with_dotted_properties(self):
        made = self.called("""
            /**
             * @param {Object} opts - The options.
             * @param {string} opts.name - The name.
             * @param {Object[]} opts.parts
             * @param {number} opts.parts[].size
             * @param {Object} [opts.deep]
             * @param {boolean} opts.deep.down
             * @param {number} [opts.times=2]
             */
            export default function repeat(opts) { return opts.name.repeat(opts.times) + opts.parts.length; }
        """)
        self.assertEqual(made["call"], {"style": "object"})
        self.assertEqual((made["name"], made["export"]), ("repeat", "default"))
        found = made["input_schema"]
        self.assertEqual(found["required"], ["name", "parts"])
        self.assertEqual(found["properties"]["parts"]["items"]["required"], ["size"])
        self.assertEqual(found["properties"]["deep"]["required"], ["down"])
        self.assertEqual(made["result"], "exampleexample1")

    def test_object_parameter_inline_typedef_and_destructured(self):
        self.assertEqual(self.called("/** @param {{a: number}} x */\nexport const f = (x) => x.a;")["call"]["style"], "object")
        made = self.called("""
            /** @typedef {{a: number, b?: string}} Opts */
            /** @param {Opts} opts */
            export const f = (opts) => opts.a;
        """)
        self.assertEqual((made["call"]["style"], made["input_schema"]["required"]), ("object", ["a"]))
        made = self.called("export function f({ a, b = 'x', c: d = {}, ...rest }) { return [a, b, d, rest]; }")
        self.assertEqual(made["input_schema"]["properties"], {"a": {}, "b": {"default": "x"}, "c": {"default": {}}})
        self.assertEqual((made["input_schema"]["required"], made["input_schema"]["additionalProperties"]), (["a"], True))
        made = self.called("/**\n * @param {number} a\n * @param {number} b\n */\nexport const f = ({ a, b = 3 }) => a + b;")
        self.assertEqual(made["input_schema"]["properties"], {"a": {"type": "number"}, "b": {"type": "number", "default": 3}})
        self.assertEqual((made["input_schema"]["required"], made["result"]), (["a"], 4))

    def test_plain_object_stays_positional(self):
        made = self.called("/** @param {Object} data */\nexport const f = (data) => Object.keys(data);")
        self.assertEqual(made["call"], {"style": "positional", "names": ["data"]})

    def test_comment_on_one_line_and_with_other_line_ends(self):
        made = self.called("/** Adds. @param {number} a */\nexports.f = function (a) { return a + this.b; }.bind({ b: 1 });", file="tool.cjs")
        self.assertEqual((made["summary"], made["call"]["names"], made["result"]), ("Adds.", ["a"], 2))
        (self.folder / "src/ends.mjs").write_bytes(b"/**\r\n * Ends.\r\n * @param {number} a\r\n */\r\nexport function f(a) {\r\n  return a;\r\n}\r\n")
        made = self.node(None, file="ends.mjs")
        self.assertEqual((made["summary"], made["input_schema"]["properties"]), ("Ends.", {"a": {"type": "number"}}))

    def test_no_comment(self):
        made = self.called("// nothing\nexport const f = async (text, /* the */ n = 2, m = [1, ')'], o = Date.now()) => text.repeat(n);")
        found = made["input_schema"]
        self.assertEqual(found["properties"], {"text": {}, "n": {"default": 2}, "m": {"default": [1, ")"]}, "o": {}})
        self.assertEqual((found["required"], made["result"]), (["text"], "exampleexample"))
        self.assertEqual(self.called("export const f = x => x * x;")["sample_input"], {"x": 1})

    def test_comment_of_another_function_is_not_taken(self):
        made = self.node("/** Other.\n * @param {string} x */\nfunction other(x) {}\nexport function f(x) { return other(x); }")
        self.assertEqual((made["summary"], made["input_schema"]["properties"]), ("", {"x": {}}))

    def test_dates_become_dates(self):
        made = self.called("""
            /**
             * @param {Date} when
             * @returns {{year: number, next: Date}}
             */
            export const f = (when) => ({ year: when.getUTCFullYear(), next: when });
        """)
        self.assertEqual(made["call"], {"style": "positional", "dates": ["when"], "names": ["when"]})
        self.assertEqual(made["result"], {"year": 2024, "next": "2024-01-01T12:00:00.000Z"})
        done = self.run_tool(*self.runner(made), '{"when": "soon"}')
        self.assertIn("not a date", json.loads(done.stderr)["error"])

    def test_example_gives_the_sample(self):
        made = self.called("""
            /**
             * @param {string} a
             * @param {{b: number[]}} c
             * @example
             * const x = join(y, z);
             * @example
             * await join('it, (is)', { b: [1, 2] }) // => ...
             */
            export const join = (a, c) => a + c.b.length;
        """)
        self.assertEqual(made["sample_input"], {"a": "it, (is)", "c": {"b": [1, 2]}})

    def test_choice_of_the_export(self):
        source = "export const a = () => 1;\nexport const b = () => 2;\nexport const n = 5;\nexport class C {}"
        self.assertRefused(self.node(source), "several functions: a, b", "tool.mjs:a")
        self.assertEqual(self.called(source, "--export", "b")["result"], 2)
        self.assertRefused(self.node(source, "--export", "c"), '"c"', "a, b")
        self.assertEqual(self.called(source + "\nexport default () => 3;")["result"], 3)
        self.assertRefused(self.node("export const n = 5;"), "exports no function")

    def test_common_js(self):
        self.write("lib/twice.js", "exports.twice = (x) => x * 2;")
        made = self.called("""
            const { twice } = require("./lib/twice");
            module.exports = {
              /**
               * Doubles.
               * @param {number} x
               */
              double(x) { return this.times(x); },
              times: (x) => twice(x),
            };
        """, "--export", "double", file="tool.js")
        self.assertEqual((made["type"], made["files"], made["result"]), ("commonjs", ["lib/twice.js", "tool.js"], 2))
        self.assertEqual((made["summary"], made["input_schema"]["properties"]), ("Doubles.", {"x": {"type": "number"}}))
        made = self.called("/** @param {number} n */\nmodule.exports = function (n) { return n + 1; };", file="inc.cjs")
        self.assertEqual((made["name"], made["export"], made["result"]), ("inc", "default", 2))

    def test_module_type_and_files_above(self):
        self.write("package.json", '{"type": "module"}')
        self.write("lib/data.json", '{"n": 4}')
        self.write("lib/x.js", "import { readFileSync } from 'node:fs';\nexport const x = 1; export const d = new URL('./data.json', import.meta.url);")
        self.write("tools/tool.js", "import { x } from '../lib/x.js';\nimport 'fs';\nexport const f = () => x;")
        made = self.node(None, "--call", file="tools/tool.js")
        self.assertEqual((made["type"], made["root"], made["file"]), ("module", "..", "tools/tool.js"))
        self.assertEqual((made["files"], made["packages"]), (["lib/data.json", "lib/x.js", "tools/tool.js"], []))
        self.assertRuns(made, *self.runner(made))

    def test_packages_are_named(self):
        self.write("node_modules/@scope/pkg/package.json", '{"name": "@scope/pkg", "main": "index.js"}')
        self.write("node_modules/@scope/pkg/index.js", "exports.y = 7;")
        made = self.node("import { y } from '@scope/pkg';\n// import 'unused'\nexport const f = () => y;", "--call")
        self.assertEqual((made["packages"], made["files"], made["result"]), (["@scope/pkg"], ["tool.mjs"], 7))

    def test_wrapped_function_takes_its_comment(self):
        made = self.called("""
            const logged = (fn) => (...args) => fn(...args);
            /**
             * Adds.
             * @param {number} a
             * @param {number} b
             */
            export const add = logged((a, b) => a + b);
        """)
        self.assertEqual((made["call"]["names"], made["result"]), (["a", "b"], 2))

    def test_prints_do_not_corrupt_stdout(self):
        made = self.called("console.log('import');\nexport const f = () => { console.log('call'); process.stdout.write('raw'); return 1; };")
        self.assertEqual(made["result"], 1)
        self.assertIn("call", self.run_tool(*self.runner(made), "{}").stderr)

    def test_results_of_all_kinds(self):
        made = self.called("export function* f() { yield new Set([1]); yield new Map([['a', 10n]]); yield undefined; }")
        self.assertEqual(made["result"], [[1], {"a": 10}, None])
        self.assertEqual(self.called("export const f = () => {};")["result"], None)
        self.assertIs(self.node("export const f = () => Math.random();", "--call")["deterministic"], False)

    def test_call_errors(self):
        for body, error in {
            "() => { throw new RangeError('bad\\nluck'); }": "RangeError: bad\nluck",
            "() => NaN": "RangeError: NaN has no JSON form",
            "() => () => 1": "TypeError: a function has no JSON form",
            "() => Buffer.from('x')": "TypeError: bytes have no JSON form",
            "() => { const a = {}; a.a = a; return a; }": "TypeError: Converting circular structure",
            "() => process.exit(3)": "Error: process.exit(3) was called",
            "() => new Promise(() => {})": "Error: the promise never settles",
            "() => new Promise(() => setTimeout(() => { throw new Error('late'); }, 5))": "Error: late",
        }.items():
            with self.subTest(body):
                made = self.node(f"export const f = {body};", "--call")
                self.assertTrue(made["call_error"].startswith(error), made)
                self.assertNotIn("result", made)

    def test_files_that_do_not_load(self):
        self.assertRefused(self.node(None, file="gone.mjs"), "no file src/gone.mjs")
        self.assertRefused(self.node("", file="tool.ts"), "not a JavaScript file", "Compile")
        self.assertRefused(self.node("throw new Error('no');"), "Importing tool.mjs failed: Error: no")
        self.assertRefused(self.node("export const f = (;"), "SyntaxError")
        self.assertRefused(self.node("import 'not-there-at-all';"), "not-there-at-all", "npm install")
        self.assertRefused(self.node("process.exit(0);"), "process.exit(0)")
        self.assertRefused(self.node("await new Promise(() => {});"), "never settles")
        self.assertRefused(self.node("export const f = () => 1;", "--input", "3"), "--input")

    def test_types_without_json_form(self):
        for written, name in {"Function": "Function", "() => void": "function", "Buffer": "Buffer", "Map<string, number>": "Map"}.items():
            with self.subTest(written):
                self.assertRefused(self.node(f"/** @param {{{written}}} x */\nexport const f = (x) => x;"), '"x"', name)
        self.assertRefused(self.node("export const f = (...all) => all;"), "...all", "array")
        self.assertRefused(self.node("/** @returns {Function} */\nexport const f = () => 1;"), "The result", "Function")

    def test_unknown_types_are_left_open(self):
        made = self.node("/**\n * @template T\n * @param {Strange} x\n * @param {T} y\n * @param {a b} z\n */\nexport const f = (x, y, z) => x;")
        self.assertEqual(made["input_schema"]["properties"], {"x": {}, "y": {}, "z": {}})
        self.assertEqual(len(made["warnings"]), 3)

    def test_runner_failures(self):
        made = self.called("export const f = (n = 1) => { if (n === 0) throw new RangeError('zero\\nlines'); if (n === 2) process.exit(0); return n; };")
        command = self.runner(made)
        for given, error in (
            ('{"n": 0}', "RangeError: zero\nlines"), ('{"n": 2}', "process.exit(0)"), ('{"x": 1}', 'unexpected argument "x"'),
            ("[1]", "not a JSON object"), ("nonsense", "not a JSON object"),
        ):
            done = self.run_tool(*command, stdin=given)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done)
            self.assertIn(error, json.loads(done.stderr)["error"])
        self.assertEqual(self.run_tool(*command).stdout, "1\n")

    def test_runner_ends_although_timers_run(self):
        made = self.called("setInterval(() => {}, 1000);\nexport const f = () => 'x'.repeat(300000);")
        self.assertEqual(len(made["result"]), 300000)


class SideBySide(unittest.TestSuite):
    """Runs its tests at the same time: they do little but wait for other processes."""

    def run(self, result, debug=False):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda test: test.run(result), self))
        return result


def load_tests(loader, tests, pattern):
    """What unittest asks for instead of its own suite."""
    return SideBySide(test for suite in tests for test in suite)


if __name__ == "__main__":
    unittest.main()
