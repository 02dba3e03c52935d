# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What a registry may answer, and what then becomes of records."""

import json
import threading
import unittest

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from decoding import Registry, decode, framed

SCHEMA = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]})


class Answers(unittest.TestCase):
    def setUp(self):
        self.registry = Registry()
        self.addCleanup(self.registry.close)

    def test_json_schema_is_what_follows_the_frame(self):
        write = JSONSerializer('{"title": "T", "type": "object"}', SchemaRegistryClient({"url": self.registry.url}))
        record = write({"a": [1, "é"]}, SerializationContext("t", MessageField.VALUE))
        self.assertEqual(json.loads(decode([record], self.registry.url, "json")[0]), {"a": [1, "é"]})

    def test_a_schema_is_fetched_once_and_an_unknown_one_is_said_to_be_so(self):
        number = self.registry.register("s", SCHEMA)
        records = [framed(number, b"\x02")] * 3 + [framed(999, b"\x02")] * 3
        self.assertEqual(
            decode(records, self.registry.url, "avro"),
            ['{"a":1}'] * 3 + ["error unknownSchema schema 999 is not in the registry"] * 3)
        paths = [request["path"] for request in self.registry.requests()]
        self.assertEqual([paths.count(f"/schemas/ids/{each}") for each in (number, 999)], [1, 1])

    def test_records_wait_for_a_registry_in_trouble_and_are_read_afterwards(self):
        number = self.registry.register("s", SCHEMA)
        for behaviour in ["status 500", "page", "garbage"]:
            self.registry.behave(behaviour)
            asked = len(self.registry.requests())

            def mend():
                self.registry.wait_for("a request in vain", lambda: len(self.registry.requests()) > asked)
                self.registry.behave("well")
            mending = threading.Thread(target=mend)
            mending.start()
            lines = decode([framed(number, b"\x02"), framed(number, b"\x04")], self.registry.url, "avro")
            mending.join()
            self.assertEqual(lines, ['{"a":1}', '{"a":2}'], behaviour)
            self.assertGreater(len(self.registry.requests()), asked + 1)

    def test_a_registry_that_stays_away_is_said_to_be_so(self):
        self.registry.behave("status 503")
        [line] = decode([framed(1, b"\x02")], self.registry.url, "avro", "--patience", "2")
        self.assertEqual(line, f"error waiting schema 1: {self.registry.url} answers 503")


if __name__ == "__main__":
    unittest.main(verbosity=2)
