# --- conversion: JSON into the types of a function, and its result into JSON ---

ABSTRACT_ARRAYS = (
    abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable, abc.Iterator, abc.Generator,
    abc.AsyncIterable, abc.AsyncIterator, abc.AsyncGenerator,
)
FAMILIES = (
    ("enum", enum.Enum), ("bytes", (bytes, bytearray, memoryview)), ("string", str), ("boolean", bool),
    ("integer", int), ("number", float), ("decimal", decimal.Decimal), ("datetime", datetime.datetime),
    ("date", datetime.date), ("time", datetime.time), ("path", pathlib.PurePath), ("uuid", uuid.UUID),
    ("mapping", abc.Mapping), ("set", abc.Set), ("tuple", tuple), ("array", (list, collections.deque)),
)
MISSING = dataclasses.MISSING


def hints_of(thing):
    """The resolved type hints of a function, a partial, a callable object or a class."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    thing = inspect.unwrap(thing)
    if not isinstance(thing, type) and not inspect.isroutine(thing):
        thing = type(thing).__call__
    return typing.get_type_hints(thing, include_extras=True)


def bare(hint):
    """A type hint without its wrappers (Annotated, Required, NewType, TypeVar), and the description they gave."""
    note = None
    while True:
        origin = typing.get_origin(hint)
        if origin is typing.Annotated:
            texts = [extra if isinstance(extra, str) else getattr(extra, "description", None) for extra in hint.__metadata__]
            note = note or next((text for text in texts if isinstance(text, str)), None)
            hint = hint.__origin__
        elif str(origin).rpartition(".")[2] in ("Required", "NotRequired", "ReadOnly"):
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif isinstance(hint, typing.TypeVar):
            hint = typing.Union[hint.__constraints__] if hint.__constraints__ else hint.__bound__ or typing.Any
        else:
            return hint, note


def family(hint):
    """Which family of types a bare hint belongs to; None when JSON has no form for it."""
    base = typing.get_origin(hint) or hint
    if base in (typing.Any, object, inspect.Parameter.empty, typing.NoReturn, getattr(typing, "Never", typing.NoReturn)):
        return "any"
    if base in (None, type(None)):
        return "none"
    if base is typing.Union or base is getattr(types, "UnionType", typing.Union):
        return "union"
    if base is typing.Literal:
        return "literal"
    if hasattr(base, "__value__"):
        return "alias"
    if base is getattr(typing, "LiteralString", str):
        return "string"
    return class_family(base) if isinstance(base, type) else None


def class_family(base):
    """The family of a class."""
    if hasattr(base, "__required_keys__") or dataclasses.is_dataclass(base):
        return "object"
    if hasattr(base, "model_json_schema"):
        return "model"
    if issubclass(base, tuple) and hasattr(base, "_fields"):
        return "object"
    if base is os.PathLike:
        return "path"
    if base in ABSTRACT_ARRAYS:
        return "array"
    return next((name for name, classes in FAMILIES if issubclass(base, classes)), None)


def fields_of(base, output=False):
    """The fields of a TypedDict, dataclass or NamedTuple: (name, hint, required, default or MISSING)."""
    hints = hints_of(base)
    if hasattr(base, "__required_keys__"):
        return [(name, hint, is_required(base, name, hint), MISSING) for name, hint in hints.items()]
    if dataclasses.is_dataclass(base):
        return [
            (field.name, hints[field.name], output or field.default is field.default_factory is MISSING, field.default)
            for field in dataclasses.fields(base) if field.init or output
        ]
    defaults = base._field_defaults
    return [
        (name, hints.get(name, typing.Any), output or name not in defaults, defaults.get(name, MISSING))
        for name in base._fields
    ]


def is_required(base, name, hint):
    """Whether a TypedDict key must be there; a marker on the key wins over the class's total."""
    while True:
        origin = typing.get_origin(hint)
        marker = str(origin).rpartition(".")[2]
        if marker in ("Required", "NotRequired"):
            return marker == "Required"
        if origin is not typing.Annotated and marker != "ReadOnly":
            return name in base.__required_keys__
        hint = hint.__origin__ if origin is typing.Annotated else typing.get_args(hint)[0]


def enum_form(member):
    """The JSON form of an Enum member: its value if that is a scalar, else its name."""
    return member.value if isinstance(member.value, (str, int, float, bool, type(None))) else member.name


def same(left, right):
    """Equality that keeps true and 1 apart."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def expect(fits, value, what):
    """Refuses a value that is not what it should be."""
    if not fits:
        raise ValueError(f"{json.dumps(value)[:80]} is not {what}")


def fit(label, value, hint, default=MISSING):
    """Converts one named value; a refusal names it."""
    if value is None and default is None:
        return None
    try:
        return convert(value, hint)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{label}: {error}") from None


def convert(value, hint):
    """The Python value a JSON value stands for under a type hint; ValueError or TypeError when it does not fit."""
    hint = bare(hint)[0]
    kind = family(hint)
    if kind == "any":
        return value
    if kind not in CONVERTERS:
        raise TypeError(f"{hint} has no JSON form")
    return CONVERTERS[kind](value, typing.get_origin(hint) or hint, typing.get_args(hint))


def to_none(value, base, args):
    expect(value is None, value, "null")


def to_union(value, base, args):
    for choice in args:
        try:
            return convert(value, choice)
        except (TypeError, ValueError):
            continue
    expect(False, value, "one of the allowed types")


def to_literal(value, base, args):
    for choice in args:
        if same(value, enum_form(choice) if isinstance(choice, enum.Enum) else choice):
            return choice
    expect(False, value, "one of the allowed values")


def to_enum(value, base, args):
    for member in base:
        if same(value, enum_form(member)):
            return member
    expect(False, value, f"a value of {base.__name__}")


def to_string(value, base, args):
    expect(isinstance(value, str), value, "a string")
    return value if base is str or not isinstance(base, type) else base(value)


def to_boolean(value, base, args):
    expect(isinstance(value, bool), value, "a boolean")
    return value


def to_integer(value, base, args):
    whole = isinstance(value, int) or isinstance(value, float) and value.is_integer()
    expect(whole and not isinstance(value, bool), value, "an integer")
    return base(value)


def to_number(value, base, args):
    expect(isinstance(value, (int, float)) and not isinstance(value, bool), value, "a number")
    return base(str(value)) if issubclass(base, decimal.Decimal) else base(value)


def to_moment(value, base, args):
    to_string(value, str, ())
    return base.fromisoformat(value[:-1] + "+00:00" if value[-1:] in ("Z", "z") else value)


def to_path(value, base, args):
    return (pathlib.Path if base is os.PathLike else base)(to_string(value, str, ()))


def to_mapping(value, base, args):
    expect(isinstance(value, dict), value, "an object")
    key, item = args if len(args) == 2 else (typing.Any, typing.Any)
    made = {to_key(name, key): fit(f'"{name}"', each, item) for name, each in value.items()}
    return base(made) if issubclass(base, dict) and base is not collections.defaultdict else made


def to_key(name, hint):
    """The dict key an object's key stands for; integers and enums are written as strings there."""
    hint = bare(hint)[0]
    kind = family(hint)
    choices = list(hint) if kind == "enum" else typing.get_args(hint) if kind == "literal" else []
    for choice in choices:
        if key_to_json(choice) == name:
            return choice
    return int(name) if kind == "integer" else convert(name, hint)


def to_tuple(value, base, args):
    expect(isinstance(value, list), value, "an array")
    if len(args) == 2 and args[1] is Ellipsis or not args:
        args = (args[0] if args else typing.Any,) * len(value)
    args = () if args == ((),) else args
    expect(len(value) == len(args), value, f"an array of {len(args)}")
    return tuple(fit(f"[{index}]", each, hint) for index, (each, hint) in enumerate(zip(value, args)))


def to_array(value, base, args):
    expect(isinstance(value, list), value, "an array")
    made = [fit(f"[{index}]", each, args[0] if args else typing.Any) for index, each in enumerate(value)]
    if issubclass(base, abc.Set):
        return frozenset(made) if base is frozenset else set(made)
    if base in (abc.Iterator, abc.Generator):
        return iter(made)
    return made if base is list or base in ABSTRACT_ARRAYS else base(made)


def to_object(value, base, args):
    expect(isinstance(value, dict), value, "an object")
    fields = {name: (hint, default) for name, hint, _, default in fields_of(base)}
    missing = [name for name, _, required, _ in fields_of(base) if required and name not in value]
    unknown = [name for name in value if name not in fields]
    if missing or unknown:
        raise ValueError(f"missing {missing[0]!r}" if missing else f"unexpected {unknown[0]!r}")
    made = {name: fit(f'"{name}"', each, *fields[name]) for name, each in value.items()}
    return made if hasattr(base, "__required_keys__") else base(**made)


CONVERTERS = {
    "none": to_none, "union": to_union, "literal": to_literal, "enum": to_enum, "string": to_string,
    "boolean": to_boolean, "integer": to_integer, "number": to_number, "decimal": to_number,
    "datetime": to_moment, "date": to_moment, "time": to_moment, "path": to_path,
    "uuid": lambda value, base, args: base(to_string(value, str, ())),
    "mapping": to_mapping, "set": to_array, "tuple": to_tuple, "array": to_array, "object": to_object,
    "alias": lambda value, base, args: convert(value, base.__value__),
    "model": lambda value, base, args: base.model_validate(value),
}


def to_json(value):
    """The JSON form of a Python value; TypeError or ValueError when there is none."""
    if isinstance(value, enum.Enum):
        return enum_form(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, decimal.Decimal)):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no JSON form")
        return float(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (pathlib.PurePath, uuid.UUID)):
        return str(value)
    return compound_to_json(value)


def compound_to_json(value):
    """The JSON form of a value made of others."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return to_json(value.model_dump(mode="json"))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return to_json(value._asdict())
    if isinstance(value, abc.Mapping):
        return {key_to_json(key): to_json(each) for key, each in value.items()}
    if isinstance(value, abc.Set):
        return set_to_json(value)
    listed = isinstance(value, (abc.Sequence, abc.Iterator, abc.ValuesView, collections.deque))
    if listed and not isinstance(value, (bytes, bytearray, memoryview)):
        return [to_json(each) for each in value]
    if hasattr(value, "tolist"):
        return to_json(value.tolist())
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


def key_to_json(key):
    """The string an object key becomes."""
    form = to_json(key)
    if isinstance(form, (list, dict)):
        raise TypeError(f"a key of type {type(key).__name__} has no JSON form")
    return form if isinstance(form, str) else json.dumps(form)


def set_to_json(value):
    """A set as an array in an order that does not change from run to run."""
    items = [to_json(each) for each in value]
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def arguments_for(function, given):
    """The positional and keyword arguments of a call, made from the JSON input object."""
    hints, rest, positional, named = hints_of(function), dict(given), [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint, default = hints.get(name, typing.Any), parameter.default
        if parameter.kind is parameter.VAR_KEYWORD:
            named.update({key: fit(f'argument "{key}"', value, hint) for key, value in rest.items()})
            rest = {}
        elif name in rest:
            value = fit(f'argument "{name}"', rest.pop(name), hint, default)
            positional.append(value) if parameter.kind is parameter.POSITIONAL_ONLY else named.update({name: value})
        elif default is parameter.empty:
            raise TypeError(f'argument "{name}" is missing')
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(default)
    if rest:
        raise TypeError(f'unexpected argument "{next(iter(rest))}"')
    return positional, named


async def settle(result):
    """Waits for an awaitable and collects an asynchronous iterator."""
    if inspect.isawaitable(result):
        result = await result
    return [item async for item in result] if hasattr(result, "__aiter__") else result


def call(function, given):
    """Calls the function with a JSON input object and gives the JSON form of its result."""
    positional, named = arguments_for(function, given)
    result = function(*positional, **named)
    if inspect.isawaitable(result) or hasattr(result, "__aiter__"):
        import asyncio  # here, because it is slow to load and most tools need none
        result = asyncio.run(settle(result))
    return to_json(result)
