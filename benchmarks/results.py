# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Figures, what was asked of them, and their sections of RESULTS.md."""

import datetime
import os
import pathlib
import platform
import re
import statistics
import subprocess

FILE = pathlib.Path(__file__).resolve().parent / "RESULTS.md"
HEAD = """\
<!-- Written by the commands of benchmarks/README.md: each replaces its section. -->

# Results
"""


class Target:
    """What a figure must keep and should reach."""

    def __init__(self, must, goal, unit="", more_is_better=False):
        self.must, self.goal, self.unit = must, goal, unit
        self.more_is_better = more_is_better

    def missed_by(self, figure, limit):
        """The share of the limit by which the figure is on the wrong side; 0 if it is not."""
        distance = limit - figure if self.more_is_better else figure - limit
        return max(0, distance / limit)

    def result(self, figure):
        if not self.missed_by(figure, self.goal):
            return "goal reached"
        word, limit = ("goal", self.goal)
        if self.missed_by(figure, self.must):
            word, limit = ("must", self.must)
        kept = "" if word == "must" else "must kept, "
        share = self.missed_by(figure, limit)
        return f"{kept}{word} missed by {share:.0%}" if share >= 0.01 else f"{kept}{word} missed"

    def cells(self, figure):
        unit = f" {self.unit}" if self.unit else ""
        limits = [f"{plain(limit)}{unit}" for limit in (self.must, self.goal)]
        return [*limits, self.result(figure)]


def plain(value):
    """Three digits that matter, thousands separated."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(values, unit=""):
    """`median (least–most)`."""
    unit = f" {unit}" if unit else ""
    if len(values) == 1:
        return plain(values[0]) + unit
    return (f"{plain(statistics.median(values))}{unit} "
            f"({plain(min(values))}–{plain(max(values))})")


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def ratios(figures, yardstick):
    """Each round against its own yardstick: what slows the machine slows both."""
    return [figure / base for figure, base in zip(figures, yardstick)]


def ratio_rows(cases, yardstick):
    """One row a case: (name, µs per push of each round, target or None)."""
    rows = [["h2load", spread(yardstick), "1", "", "", ""]]
    for name, figures, target in cases:
        shares = ratios(figures, yardstick)
        judged = target.cells(statistics.median(shares)) if target else ["", "", ""]
        rows.append([name, spread(figures), spread(shares), *judged])
    return rows


RATIO_HEAD = ["", "µs of CPU per push", "× h2load", "must", "goal", "result"]


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    load = os.getloadavg()[0]
    return (f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores, "
            f"Linux {platform.release()}, load {load:.1f} before")


def commit():
    def git(*arguments):
        run = subprocess.run(["git", *arguments], cwd=FILE.parent, capture_output=True, text=True)
        return run.stdout.strip() if run.returncode == 0 else ""

    # Files that the commands themselves write do not count as changes of what was measured.
    changed = git("status", "--porcelain", "--", "..", ":!RESULTS.md", ":!*.svg")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" with changes" if changed else "")


def with_contents(text):
    """The page with a list of its sections before the first."""
    titles = re.findall(r"^## (.*)$", text, re.M)
    links = [f"[{title}](#{re.sub(r'[^a-z0-9_-]', '', title.lower().replace(' ', '-'))})" for title in titles]
    sections = text[text.index("<!-- begin "):]
    return f"{HEAD}\n**Contents:** " + " ·\n".join(links) + f"\n\n{sections}"


class Section:
    """Begun before the measurements, so that the machine's load is not theirs."""

    def __init__(self, name, title, command):
        self.name, self.title = name, title
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self.lines = [f"`{command}` · {now} · commit {commit()} · {machine()}"]

    def add(self, text):
        self.lines.append(text.rstrip("\n"))

    def write(self):
        """Replaces the section of this name, or adds it."""
        begin, end = f"<!-- begin {self.name} -->", f"<!-- end {self.name} -->"
        body = "\n\n".join(self.lines)
        section = f"{begin}\n## {self.title}\n\n{body}\n{end}\n"
        text = FILE.read_text() if FILE.exists() else HEAD
        if begin in text:
            first, last = text.index(begin), text.index(end) + len(end) + 1
            text = text[:first] + section + text[last:]
        else:
            text += "\n" + section
        FILE.write_text(with_contents(text))
        print(section, flush=True)
