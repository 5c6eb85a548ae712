"""Converts a value between units; the input JSON is the last argument, or comes on stdin."""

import json
import sys

LENGTH = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0, "in": 0.0254, "ft": 0.3048, "mi": 1609.344}
MASS = {"g": 0.001, "kg": 1.0, "oz": 0.028349523125, "lb": 0.45359237}
TO_KELVIN = {"C": lambda t: t + 273.15, "F": lambda t: (t + 459.67) * 5 / 9, "K": lambda t: t}
FROM_KELVIN = {"C": lambda t: t - 273.15, "F": lambda t: t * 9 / 5 - 459.67, "K": lambda t: t}


def convert(value, source, target):
    for table in (LENGTH, MASS):
        if source in table and target in table:
            return value * table[source] / table[target]
    if source in TO_KELVIN and target in FROM_KELVIN:
        return FROM_KELVIN[target](TO_KELVIN[source](value))
    raise ValueError(f"{source} cannot be converted to {target}")


def main():
    request = json.loads(sys.argv[-1] if len(sys.argv) > 1 else sys.stdin.read())
    try:
        value = convert(request["value"], request["from"], request["to"])
    except ValueError as problem:
        print(json.dumps({"error": str(problem)}), file=sys.stderr)
        return 1
    print(json.dumps({"value": round(value, request.get("digits", 4)), "unit": request["to"]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
