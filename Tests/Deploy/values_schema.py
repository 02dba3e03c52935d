# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Makes values.schema.json of the Helm chart. A value's type and default are those of values.yaml, its
description is the comment above it, and `# @schema {…}` in that comment adds what a default cannot say.
`config` has the schema that the worker itself prints (`lamplighter check --schema`).

It is JSON Schema of draft 7, which every Helm 3 knows."""

import json
import re
import subprocess

import yaml

MARK = "# @schema "
TYPES = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
# What Helm itself gives a chart that another one depends on, and what that one may ask whether to use it.
PARENTS = {
    "global": {"type": "object", "description": "Of a chart that has this one as a dependency; not read."},
    "enabled": {"type": "boolean", "description": "Of a chart that has this one as a dependency; not read."}}
# Go's regular expressions, by which Helm 3 validates, know no look-ahead and repeat at most 1,000 times.
FORBIDDEN_START = re.compile(r"^\^\(\?:\(\?!(.+?)\)(.*)\)\$$")
LONG_REPEAT = re.compile(r"^(\^(?:\(\?:)?.*)\{(\d+),(\d{4,})\}(\)?\$)$")


def schema(values, program):
    """The schema of a values.yaml, as text. `program` is a lamplighter."""
    [root] = yaml.compose_all(values)
    printed = subprocess.run([program, "check", "--schema"], check=True, capture_output=True, text=True)
    config = portable(json.loads(printed.stdout))
    for key in ("$schema", "title"):
        config.pop(key)
    properties = {**described(root, values.splitlines(), config), **PARENTS}
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "Written by `make manifests` from values.yaml and `lamplighter check --schema`.",
        "title": "Values of Lamplighter's chart", "type": "object", "additionalProperties": False,
        "properties": properties}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def described(node, lines, config, path=""):
    """The schemas of a map's values, by their keys."""
    found = {}
    for key, value in node.value:
        name = f"{path}{key.value}"
        description, more = comment(lines, key.start_mark.line)
        if not description:
            raise ValueError(f"{name} has no description above it")
        default = yaml.safe_load(yaml.serialize(value))
        result = {"description": description, "type": TYPES[type(default)]}
        if name == "config":
            result = {**config, "description": description}
        elif isinstance(default, dict) and "additionalProperties" not in more:
            if not default:
                raise ValueError(f"{name} needs additionalProperties in {MARK.strip()}")
            result["additionalProperties"] = False
            result["properties"] = described(value, lines, config, f"{name}.")
        elif isinstance(default, list) and "items" not in more:
            raise ValueError(f"{name} needs items in {MARK.strip()}")
        else:
            result["default"] = default
        found[key.value] = {**result, **more}
    return found


def comment(lines, number):
    """The description above a line, and what it adds to the schema."""
    above = []
    while number > 0 and lines[number - 1].lstrip().startswith("#"):
        number -= 1
        above.insert(0, lines[number].strip())
    more = {}
    for each in above:
        if each.startswith(MARK):
            more.update(yaml.safe_load(each.removeprefix(MARK)))
    return " ".join(each.removeprefix("#").strip() for each in above if not each.startswith(MARK)), more


def portable(node):
    """A schema whose patterns Go understands too."""
    if isinstance(node, list):
        return [portable(each) for each in node]
    if not isinstance(node, dict):
        return node
    result = {key: portable(value) for key, value in node.items()}
    if not isinstance(result.get("pattern"), str):
        return result
    if forbidden := FORBIDDEN_START.match(result["pattern"]):
        result["not"] = {"pattern": f"^{forbidden[1]}"}
        result["pattern"] = f"^(?:{forbidden[2]})$"
    if long := LONG_REPEAT.match(result["pattern"]):
        result["minLength"], result["maxLength"] = int(long[2]), int(long[3])
        result["pattern"] = f"{long[1]}*{long[4]}"
    return result
