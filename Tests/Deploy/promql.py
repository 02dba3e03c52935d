# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Holds queries of Prometheus against docs/metrics.md and docs/registrar.md: the names and labels that they may use."""

import json
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What Prometheus and its configuration add to every series of a target.
TARGET_LABELS = {"namespace", "job", "instance"}
# Series of Prometheus itself, with their labels.
PROMETHEUS = {"up": set(), "ALERTS": {"alertname", "alertstate", "severity"}}
KEYWORDS = {"and", "or", "unless", "bool", "offset", "by", "on", "group_left", "sum", "max", "min", "count"}

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
SELECTOR = re.compile(r"([A-Za-z_:][\w:]*)\s*\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")')
GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")
WORD = re.compile(r"[A-Za-z_:][\w:]*")


def metrics():
    """Every metric of workers and of registrars: its labels, of a histogram those of each series."""
    found = {}
    page = "".join((ROOT / name).read_text() for name in ("docs/metrics.md", "docs/registrar.md"))
    for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", page, re.M):
        labels = set(re.findall(r"`(\w+)`", labels))
        if kind == "histogram":
            found[f"{name}_bucket"] = labels | {"le"}
            found[f"{name}_count"] = found[f"{name}_sum"] = labels
        else:
            found[name] = labels
    return found


def recorded(rules):
    """The series that recording rules make, with the labels by which they add up."""
    return {
        rule["record"]: set(re.split(r"[,\s]+", GROUPING.search(rule["expr"])[1])) - TARGET_LABELS
        for rule in rules
        if "record" in rule
    }


def problems(query, known):
    """What is wrong with the names and labels of a query.

    `known` has the labels of each series that there is.
    """
    found, used = [], set()

    def look_at(name, labels):
        if name not in known:
            found.append(f"there is no {name}")
            return
        used.update(known[name])
        for label in labels - known[name] - TARGET_LABELS:
            found.append(f"{name} has no label {label}")

    def selector(match):
        look_at(match[1], {label for label, _, _ in MATCHER.findall(match[2])})
        return " "

    rest = SELECTOR.sub(selector, query)
    groups = GROUPING.findall(rest)
    rest = STRING.sub(" ", GROUPING.sub(" ", rest))
    rest = re.sub(r"\[[^\]]*\]|\boffset\s+\w+|\b[\d.]+(e\d+)?\b", " ", rest)
    for match in WORD.finditer(rest):
        is_called = re.match(r"\s*\(", rest[match.end() :])
        if match[0] not in KEYWORDS and not is_called:
            look_at(match[0], set())
    for label in {word for group in groups for word in WORD.findall(group)} - used - TARGET_LABELS:
        found.append(f"no series of the query has a label {label}")
    return found


def matched_values(query):
    """The values that a query asks labels to have, each with its label."""
    for _, matchers in SELECTOR.findall(query):
        for label, operator, value in MATCHER.findall(matchers):
            value = value[1:-1]
            for one in value.split("|") if "~" in operator else [value]:
                yield label, one


def check_with_promtool(queries):
    """What promtool says about queries, each as a recording rule; nothing if they are all right."""
    rules = [{"record": f"a:query:{number}", "expr": query} for number, query in enumerate(queries)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        # JSON is YAML.
        json.dump({"groups": [{"name": "queries", "rules": rules}]}, file)
        file.flush()
        told = subprocess.run(
            ["promtool", "check", "rules", file.name], capture_output=True, text=True, check=False
        )
    return "" if told.returncode == 0 else told.stdout + told.stderr
