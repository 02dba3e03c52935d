# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Records that Protobuf's own library and Confluent's serializer have written, as the worker reads them."""

import importlib
import json
import math
import pathlib
import random
import struct
import sys
import tempfile
import unittest

import grpc_tools
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from decoding import HERE, SEED, Registry, at, decode, framed
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from grpc_tools import protoc

MESSAGES = 1000
ORDER = [2]  # The second message of the file, as the wire format has it: its place, zigzag.


def compiled():
    """The classes of order.proto, and of money.proto, which it imports."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lamplighter-proto-"))
    (folder / "shop").mkdir()
    (folder / "order.proto").write_text((HERE / "order.proto").read_text())
    (folder / "shop/money.proto").write_text((HERE / "money.proto").read_text())
    include = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{folder}", f"-I{include}", f"--python_out={folder}", "order.proto", "shop/money.proto"]
    if protoc.main(arguments):
        raise AssertionError("protoc refuses order.proto")
    sys.path.insert(0, str(folder))
    return importlib.import_module("order_pb2")


order_pb2 = compiled()


class Filler:
    """Fills messages with values that are made from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def fill(self, message, depth=0):
        for field in message.DESCRIPTOR.fields:
            # Groups are passed over.
            if field.type == field.TYPE_GROUP:
                continue
            if self.random.random() < (0.4 if depth == 0 else 0.25) and depth < 5:
                self.set(message, field, depth)
        return message

    def set(self, message, field, depth):
        repeated = field.is_repeated
        count = self.random.choice([1, 2, 5])
        if repeated and field.message_type and field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            for _ in range(count):
                target = getattr(message, field.name)
                if value.message_type:
                    self.content(target[self.scalar(key)], depth)
                else:
                    target[self.scalar(key)] = self.scalar(value)
        elif field.message_type:
            for _ in range(count if repeated else 1):
                target = getattr(message, field.name)
                self.content(target.add() if repeated else target, depth)
        elif repeated:
            getattr(message, field.name).extend(self.scalar(field) for _ in range(count))
        else:
            setattr(message, field.name, self.scalar(field))

    def content(self, message, depth):
        random = self.random
        message.SetInParent()
        match message.DESCRIPTOR.full_name:
            case "google.protobuf.Timestamp":
                message.seconds = random.choice([0, -1, -62135596800, 253402300799, random.randrange(-10**10, 10**11)])
                message.nanos = self.nanos()
            case "google.protobuf.Duration":
                message.seconds = random.choice([0, 3, 315576000000, -5, -315576000000])
                message.nanos = self.nanos() * random.choice([1, -1])
                if (message.seconds < 0) != (message.nanos < 0):
                    message.nanos = -message.nanos if message.seconds else message.nanos
            case "google.protobuf.Struct":
                message.update({"a": 1, "é\"": [None, True, {"x": "y"}, 1.5], "": {}, str(random.random()): -3.25})
            case "google.protobuf.ListValue":
                message.extend([1, "two", None, [], {"three": False}])
            case "google.protobuf.FieldMask":
                message.paths.extend(["a_b.c_d", "e"])
            case _:
                self.fill(message, depth + 1)
        # What proto2 requires.
        if message.DESCRIPTOR.full_name == "shop.Money":
            message.units = self.integer(64, True)

    def nanos(self):
        return self.random.choice([0, 1, 1000, 999_999_999, 500_000_000, 123_000])

    def integer(self, bits, signed):
        low = -2**(bits - 1) if signed else 0
        high = low + 2**bits - 1
        return self.random.choice([low, high, 0, 1, 127, 128, self.random.randrange(low, high + 1)])

    def scalar(self, field):
        random = self.random
        kind = {value: name for name, value in vars(type(field)).items() if name.startswith("TYPE_")}[field.type][5:]
        match kind:
            case "DOUBLE":
                return random.choice([0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1e300, random.random()])
            case "FLOAT":
                return random.choice([0.1, 1.0, math.inf, -3.25e20, random.random()])
            case "BOOL":
                return random.random() < 0.5
            case "STRING":
                return "".join(random.choices("ab é\"\\\n\u0001€𝄞", k=random.randrange(12)))
            case "BYTES":
                return random.randbytes(random.randrange(9))
            case "ENUM":
                return random.choice([0, 1, -2, 77])
            case _:
                return self.integer(64 if "64" in kind else 32, not kind.startswith(("U", "FIXED")))


def differs(expected, found, path=""):
    """Where JSON is not what Protobuf's own library makes; nothing if it is.

    64-bit integers are numbers and not strings here, and floats may have another number of digits.
    """
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        return next(filter(None, (differs(value, found[key], f"{path}/{key}") for key, value in expected.items())), None)
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return next(filter(None, (differs(*pair, f"{path}/{index}") for index, pair in enumerate(zip(expected, found)))), None)
    if expected == found and isinstance(expected, bool) == isinstance(found, bool):
        return None
    if isinstance(found, int) and isinstance(expected, str) and str(found) == expected:
        return None
    if isinstance(found, float) and isinstance(expected, (int, float)) and struct.pack("<f", found) == struct.pack("<f", expected):
        return None
    return f"{path}: {found!r} instead of {expected!r}"


class Protobuf(unittest.TestCase):
    def setUp(self):
        self.registry = Registry()
        self.addCleanup(self.registry.close)
        self.registry.register("money.proto", (HERE / "money.proto").read_text(), "PROTOBUF")
        self.number = self.registry.register(
            "orders-value", (HERE / "order.proto").read_text(), "PROTOBUF",
            [{"name": "shop/money.proto", "subject": "money.proto", "version": 1}])

    def messages(self, count):
        return [Filler(f"{SEED} {index}").fill(order_pb2.Order()) for index in range(count)]

    def record(self, message, indexes=(2, 2)):
        """The wire format: how many places, and each of them, zigzag. Those here are below 64."""
        return framed(self.number, bytes(indexes) + message)

    def test_random_messages_become_the_json_of_protobufs_own_library(self):
        messages = self.messages(MESSAGES)
        lines = decode((self.record(message.SerializeToString()) for message in messages), self.registry.url, "protobuf")
        self.assertEqual(len(lines), MESSAGES)
        for index, (message, line) in enumerate(zip(messages, lines)):
            expected = MessageToDict(message)
            problem = line if line.startswith("error") else differs(expected, json.loads(line))
            self.assertIsNone(problem, f"message {index} of seed {SEED}")

    def test_messages_one_after_the_other_are_merged(self):
        pairs = list(zip(self.messages(200), reversed(self.messages(200))))
        merged = [first.SerializeToString() + second.SerializeToString() for first, second in pairs]
        lines = decode(map(self.record, merged), self.registry.url, "protobuf")
        for index, (content, line) in enumerate(zip(merged, lines)):
            try:
                expected = MessageToDict(order_pb2.Order.FromString(content))
            except SerializeToJsonError:
                # Such as a duration whose parts have different signs.
                self.assertRegex(line, "^error content ", f"messages {index} of seed {SEED}")
                continue
            problem = line if line.startswith("error") else differs(expected, json.loads(line))
            self.assertIsNone(problem, f"messages {index} of seed {SEED}")

    def test_what_pointers_name_is_the_same_as_without_them(self):
        records = [self.record(message.SerializeToString()) for message in self.messages(200)]
        whole = [json.loads(line) for line in decode(records, self.registry.url, "protobuf")]
        for pointers in [["/aString"], ["/lines/1/skuCode", "/card"], ["/byFlag/true", "/goods/parts/0/count"],
                         ["/anything/a", "/times"], ["/total/units", "/perhaps", "/wrappedFlags/0"]]:
            options = [word for pointer in pointers for word in ("--pointer", pointer)]
            for document, line in zip(whole, decode(records, self.registry.url, "protobuf", *options)):
                for pointer in pointers:
                    self.assertEqual(at(json.loads(line), pointer), at(document, pointer), f"{pointer} of seed {SEED}")

    def test_messages_in_messages_are_named_by_their_places(self):
        line = order_pb2.Order.Line(sku_code="x", count=3)
        record = self.record(line.SerializeToString(), (4, 2, 0))
        unused = self.record(b"", (0,))
        nothing = self.record(b"", (2, 4))
        lines = decode([record, unused, nothing], self.registry.url, "protobuf")
        self.assertEqual([json.loads(line) for line in lines[:2]], [{"skuCode": "x", "count": 3}, {}])
        self.assertRegex(lines[2], "^error unusableSchema .* no message at the place")

    def test_confluents_serializer_writes_what_is_read(self):
        client = SchemaRegistryClient({"url": self.registry.url})
        settings = {"auto.register.schemas": False, "use.latest.version": True, "use.deprecated.format": False}
        write = ProtobufSerializer(order_pb2.Order, client, settings)
        record = write(order_pb2.Order(an_int64=2**60), SerializationContext("orders", MessageField.VALUE))
        self.assertEqual(decode([record], self.registry.url, "protobuf"), ['{"anInt64":1152921504606846976}'])


if __name__ == "__main__":
    unittest.main(verbosity=2)
