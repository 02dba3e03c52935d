# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""A schema registry of the tests, and records with schemas as the worker's own code reads them."""

import base64
import json
import os
import pathlib
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Surfaces"))

from processes import IS_SHORT, PATIENCE, PROGRAMS, Processes, write_whole  # noqa: E402, F401

# A failing run is repeated with the seed that it prints.
SEED = int(os.environ.get("LAMPLIGHTER_SEED", time.time_ns() % 1_000_000))
print(f"LAMPLIGHTER_SEED={SEED}", file=sys.stderr)


class Registry(Processes):
    """The server of registry.py, in a process and a folder of its own."""

    def __init__(self):
        super().__init__()
        self.start("registry", sys.executable, HERE / "registry.py", self.folder)
        self.wait_for("the registry", (self.folder / "port").exists)
        self.url = f"http://127.0.0.1:{(self.folder / 'port').read_text()}"

    def behave(self, words):
        write_whole(self.folder / "behaviour", words)

    def requests(self):
        return [json.loads(line) for line in self.printed("requests").splitlines()]

    def register(self, subject, text, language="AVRO", references=()):
        """Registers a schema, and returns its number."""
        body = {"schema": text, "schemaType": language, "references": list(references)}
        request = urllib.request.Request(
            f"{self.url}/subjects/{urllib.parse.quote(subject, safe='')}/versions",
            json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())["id"]


def decode(records, url, language, *options):
    """What the worker's code makes of records: a line of JSON, or of an error, for each."""
    lines = "".join(base64.b64encode(record).decode() + "\n" for record in records)
    done = subprocess.run(
        [PROGRAMS / "lamplighter-lab", "decode", "--registry", url, "--language", language, *options],
        input=lines, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.splitlines()


def framed(number, content):
    """Confluent's wire format of Avro."""
    return struct.pack(">bI", 0, number) + content


def at(document, pointer):
    """What a JSON pointer names, or a mark that it names nothing."""
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        try:
            document = document[int(step) if isinstance(document, list) else step]
        except (KeyError, IndexError, ValueError, TypeError):
            return LookupError
    return document
