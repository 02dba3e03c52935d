# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Schemas of Avro and values of theirs, made from a seed, and what their JSON is to be."""

import base64
import datetime
import decimal
import math
import struct
import uuid

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
TEXT = "abc é\"\\/\n\u0001€𝄞 "
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


class Maker:
    """Makes a schema, and values of it. `named` has the types that later ones may mention."""

    def __init__(self, random):
        self.random = random
        self.named = {}
        self.names = 0

    def name(self, kind):
        self.names += 1
        return f"{kind}{self.names}"

    def schema(self, depth=0):
        makers = [self.primitive] * 4 + [self.logical, self.enumeration, self.fixed]
        if depth < 4:
            makers += [self.array, self.map, self.union, self.record, self.record]
        if self.named:
            makers += [lambda _: self.random.choice(list(self.named))]
        return self.random.choice(makers)(depth)

    def primitive(self, _):
        kind = self.random.choice(PRIMITIVES)
        return self.random.choice([kind, {"type": kind, "doc": "é"}])

    def logical(self, _):
        return self.random.choice([
            {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": self.random.randrange(0, 11)},
            {"type": "int", "logicalType": "date"},
            {"type": "int", "logicalType": "time-millis"},
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "long", "logicalType": "timestamp-micros"},
            {"type": "string", "logicalType": "uuid"},
            {"type": "long", "logicalType": "no-such-type"},
        ])

    def define(self, schema):
        """Later types may mention it. Of each there is one namespace, so that its full name is sure."""
        schema["namespace"] = self.random.choice(["com.shop", "top"])
        self.named[f"{schema['namespace']}.{schema['name']}"] = schema
        return schema

    def enumeration(self, _):
        symbols = [f"S{index}" for index in range(self.random.randrange(1, 300))]
        return self.define({"type": "enum", "name": self.name("E"), "symbols": symbols})

    def fixed(self, _):
        schema = {"type": "fixed", "name": self.name("F"), "size": self.random.choice([1, 2, 7, 16, 40])}
        if schema["size"] == 16 and self.random.random() < 0.5:
            schema.update(logicalType="decimal", precision=38, scale=self.random.randrange(0, 20))
        return self.define(schema)

    def array(self, depth):
        return {"type": "array", "items": self.schema(depth + 1)}

    def map(self, depth):
        return {"type": "map", "values": self.schema(depth + 1)}

    def union(self, depth):
        branches, seen = [], set()
        for _ in range(self.random.randrange(1, 4)):
            before = dict(self.named)
            branch = self.schema(depth + 1)
            resolved = self.resolve(branch)
            kind = resolved if isinstance(resolved, str) else resolved["type"] if isinstance(resolved, dict) else "union"
            key = resolved["name"] if isinstance(resolved, dict) and "name" in resolved else kind
            if kind != "union" and key not in seen:
                seen.add(key)
                branches.append(branch)
            else:
                # What it has defined goes with it.
                self.named = before
        return branches or ["null"]

    def record(self, depth):
        schema = {"type": "record", "name": self.name("R")}
        fields = [{"name": f"f{index}", "type": self.schema(depth + 1)} for index in range(self.random.randrange(0, 7))]
        self.define(schema)["fields"] = fields
        if self.random.random() < 0.3:
            fields.append(
                {"name": "again", "type": ["null", f"{schema['namespace']}.{schema['name']}"], "default": None})
        return schema

    def resolve(self, schema):
        if isinstance(schema, str) and schema in self.named:
            return self.named[schema]
        if isinstance(schema, dict) and isinstance(schema["type"], (dict, list)):
            return self.resolve(schema["type"])
        return schema

    # Values. Each comes with the JSON that it is to become.

    def value(self, schema, depth=0):
        schema = self.resolve(schema)
        if isinstance(schema, list):
            return self.branch(schema, depth)
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(schema, dict) and "logicalType" in schema:
            made = self.logical_value(schema)
            if made:
                return made
        return getattr(self, f"{kind}_value")(schema, depth)

    def branch(self, branches, depth):
        branch = self.random.choice(branches)
        if depth > 12:
            branch = next((each for each in branches if each == "null"), branches[0])
        value, expected = self.value(branch, depth + 1)
        resolved = self.resolve(branch)
        kind = resolved if isinstance(resolved, str) else resolved["type"]
        if isinstance(resolved, dict) and "name" in resolved:
            kind = f"{resolved['namespace']}.{resolved['name']}"
        return (kind, value), expected

    def logical_value(self, schema):
        random = self.random
        match schema["logicalType"]:
            case "decimal":
                limit = 10 ** min(schema["precision"], 28)
                digits = random.choice([0, 1, -1, random.randrange(-limit + 1, limit)])
                number = decimal.Decimal(digits).scaleb(-schema["scale"], decimal.Context(prec=60))
                return number, format(number, "f")
            case "date":
                days = random.randrange(-100_000, 100_000)
                return datetime.date(1970, 1, 1) + datetime.timedelta(days), days
            case "timestamp-millis":
                millis = random.randrange(-10**12, 10**13)
                return EPOCH + datetime.timedelta(milliseconds=millis), millis
            case "timestamp-micros":
                micros = random.randrange(-10**15, 10**16)
                return EPOCH + datetime.timedelta(microseconds=micros), micros
            case "uuid":
                value = uuid.UUID(int=random.getrandbits(128))
                return value, str(value)
        return None

    def null_value(self, _, __):
        return None, None

    def boolean_value(self, _, __):
        value = self.random.random() < 0.5
        return value, value

    def integer(self, bits):
        value = self.random.choice([0, 1, -1, 63, 64, -64, -65, 2**(bits - 1) - 1, -2**(bits - 1),
                                    self.random.getrandbits(bits) - 2**(bits - 1)])
        return value, value

    def int_value(self, _, __):
        return self.integer(32)

    def long_value(self, _, __):
        return self.integer(64)

    def float_value(self, _, __):
        bits = self.random.choice([0, 0x80000000, 0x7F800000, 0x7FC00000, 1, self.random.getrandbits(32)])
        value = struct.unpack("<f", struct.pack("<I", bits))[0]
        return value, ("float", value) if math.isfinite(value) else None

    def double_value(self, _, __):
        bits = self.random.choice([0, 1 << 63, 0x7FF << 52, 1, self.random.getrandbits(64)])
        value = struct.unpack("<d", struct.pack("<Q", bits))[0]
        return value, ("double", value) if math.isfinite(value) else None

    def bytes_value(self, _, __):
        value = self.random.randbytes(self.random.randrange(0, 20))
        return value, base64.b64encode(value).decode()

    def string_value(self, _, __):
        value = "".join(self.random.choices(TEXT, k=self.random.choice([0, 1, 7, 8, 9, 200])))
        if self.random.random() < 0.5:
            value = value.encode("ascii", "ignore").decode().replace("\n", "")
        return value, value

    def enum_value(self, schema, _):
        value = self.random.choice(schema["symbols"])
        return value, value

    def fixed_value(self, schema, _):
        value = self.random.randbytes(schema["size"])
        return value, base64.b64encode(value).decode()

    def array_value(self, schema, depth):
        items = [self.value(schema["items"], depth + 1) for _ in range(self.length(depth))]
        return [value for value, _ in items], [expected for _, expected in items]

    def map_value(self, schema, depth):
        pairs = {self.string_value(None, 0)[0]: self.value(schema["values"], depth + 1) for _ in range(self.length(depth))}
        return ({key: value for key, (value, _) in pairs.items()},
                {key: expected for key, (_, expected) in pairs.items()})

    def length(self, depth):
        return 0 if depth > 6 else self.random.choice([0, 1, 2, 5])

    def record_value(self, schema, depth):
        pairs = {field["name"]: self.value(field["type"], depth + 1) for field in schema["fields"]}
        return ({name: value for name, (value, _) in pairs.items()},
                {name: expected for name, (_, expected) in pairs.items()})


def differs(expected, found, path=""):
    """Where JSON is not what it is to be; nothing if it is. Floats have the same bits."""
    if isinstance(expected, tuple):
        code = "<f" if expected[0] == "float" else "<d"
        same = isinstance(found, (int, float)) and struct.pack(code, found) == struct.pack(code, expected[1])
        return None if same else f"{path}: {found} instead of {expected[1]}"
    if type(expected) is not type(found):
        return f"{path}: {found!r} instead of {expected!r}"
    if isinstance(expected, dict):
        if expected.keys() != found.keys():
            return f"{path}: {sorted(found)} instead of {sorted(expected)}"
        return next(filter(None, (differs(value, found[key], f"{path}/{key}") for key, value in expected.items())), None)
    if isinstance(expected, list):
        if len(expected) != len(found):
            return f"{path}: {len(found)} items instead of {len(expected)}"
        return next(filter(None, (differs(*pair, f"{path}/{index}") for index, pair in enumerate(zip(expected, found)))), None)
    return None if expected == found else f"{path}: {found!r} instead of {expected!r}"
