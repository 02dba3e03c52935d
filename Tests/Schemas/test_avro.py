# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Records that fastavro and Confluent's serializer have written, as the worker reads them."""

import copy
import io
import json
import random
import unittest

import fastavro
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from decoding import IS_SHORT, SEED, Registry, at, decode, framed
from random_avro import Maker, differs

SCHEMAS = 100 if IS_SHORT else 500
VALUES = 4


def written(schema, value):
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(copy.deepcopy(schema)), value)
    return buffer.getvalue()


class Avro(unittest.TestCase):
    def setUp(self):
        self.registry = Registry()
        self.addCleanup(self.registry.close)

    def made(self, count):
        """Schemas and values: the number, the value's bytes, and its JSON."""
        for index in range(count):
            maker = Maker(random.Random(f"{SEED} {index}"))
            schema = maker.schema() if index % 4 == 0 else maker.record(0)
            number = self.registry.register(f"s{index}", json.dumps(schema))
            for _ in range(VALUES):
                value, expected = maker.value(schema)
                yield number, written(schema, value), expected

    def test_values_of_random_schemas_become_the_same_json(self):
        records = list(self.made(SCHEMAS))
        self.assertEqual(len(records), SCHEMAS * VALUES)
        lines = decode((framed(number, content) for number, content, _ in records), self.registry.url, "avro")
        self.assertEqual(len(lines), len(records))
        for (number, _, expected), line in zip(records, lines):
            problem = line if line.startswith("error") else differs(expected, json.loads(line))
            self.assertIsNone(problem, f"schema {number} of seed {SEED}")

    def test_what_pointers_name_is_the_same_as_without_them(self):
        records = list(self.made(60))
        whole = [json.loads(line) for line in decode(
            (framed(number, content) for number, content, _ in records), self.registry.url, "avro")]
        chosen = random.Random(SEED)
        for pointers in [["/f0"], ["/f1", "/f2/f0"], ["/f3/0/f1", "/f3/1"], ["/again/again/f0", "/f4/f1/f2"]] + [
                [f"/f{chosen.randrange(6)}/{chosen.choice(['f0', 'f1', '0', '2', 'abc'])}" for _ in range(3)]
                for _ in range(8)]:
            options = [word for pointer in pointers for word in ("--pointer", pointer)]
            lines = decode(
                (framed(number, content) for number, content, _ in records), self.registry.url, "avro", *options)
            for document, line in zip(whole, lines):
                part = json.loads(line)
                for pointer in pointers:
                    self.assertEqual(at(part, pointer), at(document, pointer), f"{pointer} of seed {SEED}")

    def test_records_cut_short_are_refused_and_never_misread(self):
        records = [record for record in self.made(60) if record[1]]
        cut = [framed(number, content[:-1]) for number, content, _ in records]
        for line in decode(cut, self.registry.url, "avro"):
            self.assertRegex(line, r"^error content the value ends too early, at ")

    def test_confluents_serializer_writes_what_is_read(self):
        client = SchemaRegistryClient({"url": self.registry.url})
        schema = {"type": "record", "name": "Order", "fields": [
            {"name": "id", "type": "string"}, {"name": "total", "type": ["null", "double"]}]}
        write = AvroSerializer(client, json.dumps(schema))
        context = SerializationContext("orders", MessageField.VALUE)
        records = [write({"id": f"o-{index}", "total": index / 4}, context) for index in range(20)]
        lines = decode(records, self.registry.url, "avro")
        self.assertEqual([json.loads(line) for line in lines],
                         [{"id": f"o-{index}", "total": index / 4} for index in range(20)])

    def test_named_schemas_of_other_subjects_are_found(self):
        money = {"type": "record", "name": "Money", "namespace": "com.shop", "fields": [
            {"name": "units", "type": "long"}, {"name": "currency", "type": "com.shop.Currency"}]}
        currency = {"type": "enum", "name": "Currency", "namespace": "com.shop", "symbols": ["EUR", "USD"]}
        order = {"type": "record", "name": "Order", "namespace": "com.shop", "fields": [
            {"name": "total", "type": "Money"}, {"name": "tip", "type": "com.shop.Money"},
            {"name": "currency", "type": "Currency"}]}
        refer = lambda name, subject: {"name": name, "subject": subject, "version": 1}
        self.registry.register("odd / subject", json.dumps(currency))
        self.registry.register("money", json.dumps(money), references=[refer("com.shop.Currency", "odd / subject")])
        number = self.registry.register("order", json.dumps(order), references=[
            refer("com.shop.Money", "money"), refer("com.shop.Currency", "odd / subject")])
        known = {}
        for schema in (currency, money):
            fastavro.parse_schema(copy.deepcopy(schema), named_schemas=known)
        value = {"total": {"units": 7, "currency": "USD"}, "tip": {"units": 1, "currency": "EUR"}, "currency": "EUR"}
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, fastavro.parse_schema(order, named_schemas=known), value)
        lines = decode([framed(number, buffer.getvalue())], self.registry.url, "avro")
        self.assertEqual([json.loads(line) for line in lines], [value])


if __name__ == "__main__":
    unittest.main(verbosity=2)
