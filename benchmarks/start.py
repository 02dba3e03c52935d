#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""A worker's way to its index: by a replay, with a snapshot, after kill -9; see README.md."""

import os
import re
import time

from fleet import Fleet
from results import Section, Target, ratios, spread, table
from rig import Rig, fail, number

ROUNDS = number("BENCH_ROUNDS", 3)
TOKENS = [int(text) for text in os.environ.get("START_TOKENS", "1000000 10000000").split()]
# For the most tokens; a replay of the same round is the yardstick.
SECONDS = Target(5, 3, "s")
SHARE = Target(0.1, 0.1)
LONGER = Target(2, 2, "s")
COMPLETE = "the index is complete"
# Seconds that a worker serves before it is stopped and writes.
SERVED = 15
CASES = {
    "replay": "everything is read from Kafka",
    "snapshot": "from what the worker before has written at its stop",
    "kill -9": "from the same file, after a worker that had begun with it was killed"}


class Starts:
    """Workers of one fleet, one at a time, each a process of its own."""

    def __init__(self, rig, fleet):
        self.rig, self.fleet, self.started = rig, fleet, 0
        self.folder = fleet.folder / "snapshots"
        self.folder.mkdir()
        self.plain = fleet.folder / "lamplighter.yaml"
        self.keeping = fleet.folder / "keeping.yaml"
        text = self.plain.read_text()
        self.keeping.write_text(text.replace(
            "index:\n", f"index:\n  snapshotDirectory: {self.folder}\n", 1))

    @property
    def file(self):
        return self.folder / "lamplighter-index"

    def start(self, config):
        """A worker that has its index, and the seconds that it took from its start."""
        self.started += 1
        name = f"start-{self.started}"
        begun = time.monotonic()
        worker = self.rig.start(name, "lamplighter", "run", "--config", config)
        self.rig.wait_for("the index", 1500, lambda: COMPLETE in self.rig.said(name))
        seconds = time.monotonic() - begun
        # A worker that has not joined its group has less to do at its stop.
        self.rig.wait_for("its partitions", 90, lambda: " assigned " in self.rig.said(name))
        return worker, seconds

    def stop(self, worker):
        """The seconds from SIGTERM to the end."""
        begun = time.monotonic()
        self.rig.end([worker])
        if worker.returncode:
            fail(f"{worker.name} has ended with {worker.returncode}: {self.said(worker)[-500:]}")
        return time.monotonic() - begun

    def kill(self, worker):
        self.rig.processes.remove(worker)
        worker.kill()
        worker.wait()

    def copy_seconds(self):
        """What this machine takes for as many bytes from memory; a stop does not wait for the disk either."""
        content, copy = self.file.read_bytes(), self.folder / "copy"
        begun = time.monotonic()
        with open(copy, "wb", buffering=0) as file:
            for start in range(0, len(content), 1 << 20):
                file.write(content[start:start + (1 << 20)])
        seconds = time.monotonic() - begun
        copy.unlink()
        return seconds

    def said(self, worker):
        return self.rig.said(worker.name)


def measure(starts):
    """The seconds of one round."""
    figures = {}
    starts.file.unlink(missing_ok=True)
    worker, figures["replay"] = starts.start(starts.plain)
    figures["stop"] = starts.stop(worker)
    worker, _ = starts.start(starts.keeping)
    # Until it has asked Kafka once more how far the topics go: what may be behind is not written.
    time.sleep(SERVED)
    figures["writing stop"] = starts.stop(worker)
    if not starts.file.exists():
        fail(f"no snapshot was written: {starts.said(worker)[-500:]}")
    figures["bytes"] = starts.file.stat().st_size
    worker, figures["snapshot"] = starts.start(starts.keeping)
    if "the index was loaded" not in starts.said(worker):
        fail(f"the snapshot was not used: {starts.said(worker)[-500:]}")
    figures["loading"] = float(re.search(
        r"the index was loaded.* seconds=([\d.]+)", starts.said(worker))[1])
    starts.kill(worker)
    worker, figures["kill -9"] = starts.start(starts.keeping)
    starts.stop(worker)
    # Last, since it takes as much of the page cache as the file.
    figures["copy"] = starts.copy_seconds()
    print(figures, flush=True)
    return figures


def add_tokens(section, tokens, runs, is_largest):
    def of(name):
        return [run[name] for run in runs]

    def middle(values):
        return sorted(values)[len(values) // 2]

    rows = []
    for name, what in CASES.items():
        shares = ratios(of(name), of("replay"))
        judged = [""] * 3
        if is_largest and name != "replay":
            judged = SECONDS.cells(middle(of(name)))
        rows.append([name, what, spread(of(name), "s"), spread(shares), *judged])
    longer = [run["writing stop"] - run["stop"] for run in runs]
    section.add(f"**{tokens:,} tokens**, a snapshot of {spread(of('bytes'))} bytes, of the start "
                f"{spread(of('loading'), 's')} for the file alone")
    section.add(table(["", "", "to the complete index", "× replay", "must", "goal", "result"], rows))
    section.add(table(["a stop", "", "must", "goal", "result"], [
        ["without a snapshot", spread(of("stop"), "s"), "", "", ""],
        ["longer for writing one", spread(longer, "s"), *LONGER.cells(middle(longer))],
        ["a plain write of as many bytes", spread(of("copy"), "s"), "", "", ""],
        ["a start with a snapshot, × replay", spread(shares := ratios(of("snapshot"), of("replay"))),
         *(SHARE.cells(middle(shares)) if is_largest else [""] * 3)]]))


def main():
    with Rig() as rig:
        section = Section(
            "start", "A worker's start",
            f"make bench-start BENCH_ROUNDS={ROUNDS} START_TOKENS='{' '.join(map(str, TOKENS))}'")
        simulator = rig.simulator()
        section.add(
            "From a process's start to its complete index. One registration a token, two "
            f"subscriptions each, in the embedded Kafka; {ROUNDS} rounds, median (least–most).")
        for tokens in TOKENS:
            fleet = Fleet(rig, simulator, tokens, fan_outs=(1, 10))
            fleet.stop_workers()
            starts = Starts(rig, fleet)
            runs = [measure(starts) for _ in range(ROUNDS)]
            add_tokens(section, tokens, runs, tokens == max(TOKENS))
            fleet.stop()
        section.write()


main()
