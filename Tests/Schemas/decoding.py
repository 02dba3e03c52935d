# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""A schema registry of the tests, and records with schemas as the worker's own code reads them."""

import base64
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = pathlib.Path(os.environ.get("LAMPLIGHTER_PROGRAMS", HERE.parents[1] / ".build/debug"))
# A failing run is repeated with the seed that it prints.
SEED = int(os.environ.get("LAMPLIGHTER_SEED", time.time_ns() % 1_000_000))
print(f"LAMPLIGHTER_SEED={SEED}", file=sys.stderr)


class Registry:
    """The server of registry.py, in a process and a folder of its own."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lamplighter-schemas-"))
        self.process = subprocess.Popen(
            [sys.executable, HERE / "registry.py", self.folder], stdin=subprocess.PIPE)
        deadline = time.monotonic() + 30
        while not (self.folder / "port").exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("the registry does not start")
            time.sleep(0.02)
        self.url = f"http://127.0.0.1:{(self.folder / 'port').read_text()}"

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def behave(self, words):
        (self.folder / "behaviour").write_text(words)

    def requests(self):
        return [json.loads(line) for line in (self.folder / "requests").read_text().splitlines()]

    def register(self, subject, text, language="AVRO", references=()):
        """Registers a schema, and returns its number."""
        body = {"schema": text, "schemaType": language, "references": list(references)}
        request = urllib.request.Request(
            f"{self.url}/subjects/{urllib.parse.quote(subject, safe='')}/versions",
            json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
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
