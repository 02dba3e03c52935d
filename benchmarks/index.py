#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The index: memory, look-ups, replay, and a worker's way to ready; see README.md."""

import statistics

from fleet import Fleet
from results import Section, Target, spread, table
from rig import Rig, Yardstick, number

ROUNDS = number("BENCH_ROUNDS", 5)
SUBSCRIPTIONS = number("SUBSCRIPTIONS", 10_000_000)
READY_TOKENS = number("TOKENS", 1_000_000)
YARDSTICK_PUSHES = 300_000
# Each figure with its unit and its target.
ROWS = [
    ("steady", "steadyBytesPerSubscription", Target(100, 80, "B")),
    ("at its peak", "peakBytesPerSubscription", Target(100, 80, "B")),
    ("by its own account", "countedBytesPerSubscription", None),
    ("look-up", "lookupNanoseconds", Target(300, 150, "ns")),
    ("replay", "replayPerSecond", Target(300_000, 1_000_000, "/s", more_is_better=True)),
    ("of that, the index alone", "applyPerSecond", None),
]
UNITS = {"counted": "B", "apply": "/s"}


def unit(key, target):
    return target.unit if target else next(u for name, u in UNITS.items() if key.startswith(name))


def judged(target, values):
    return target.cells(statistics.median(values)) if target else ["", "", ""]


def main():
    with Rig() as rig:
        section = Section(
            "index", "The index",
            f"make bench-index BENCH_ROUNDS={ROUNDS} SUBSCRIPTIONS={SUBSCRIPTIONS} "
            f"TOKENS={READY_TOKENS}")
        simulator = rig.simulator()
        h2load = Yardstick(rig, simulator, YARDSTICK_PUSHES)
        yardstick = []
        runs = {20: [], 36: []}
        for _ in range(ROUNDS):
            yardstick.append(h2load.run())
            for subject_bytes, figures in runs.items():
                figures.append(rig.bench(
                    "index", "--subscriptions", SUBSCRIPTIONS, "--subject-bytes",
                    subject_bytes))
                print(figures[-1], flush=True)
        section.add(
            f"{SUBSCRIPTIONS:,} subscriptions in the shape of `lamplighter-bench index --help`, "
            f"seed 1, {ROUNDS} rounds, median (least–most). Memory is resident memory beyond that "
            "before the first record, for each subscription; a replay goes from the records' JSON "
            "to the index, a look-up from a random subject to its list. "
            f"h2load takes {spread(yardstick, 'µs')} of CPU a request here.")
        for subject_bytes, figures in runs.items():
            rows = []
            for name, key, target in ROWS:
                values = [figure[key] for figure in figures]
                # The shape that the target is for; whole UUIDs are longer.
                limits = judged(target if subject_bytes == 20 else None, values)
                rows.append([name, spread(values, unit(key, target)), *limits])
            section.add(f"**Subjects of {subject_bytes} bytes of random UUIDs**")
            section.add(table(["", "", "must", "goal", "result"], rows))
        add_ready(rig, simulator, section)
        section.write()


def add_ready(rig, simulator, section):
    """How long a worker takes from its start to its first poll of events."""
    fleet = Fleet(rig, simulator, READY_TOKENS)
    ready = [fleet.ready_seconds]
    while len(ready) < ROUNDS:
        fleet.restart()
        ready.append(fleet.ready_seconds)
    rates = [3 * READY_TOKENS / seconds for seconds in ready]
    section.add(f"**A worker with {READY_TOKENS:,} registrations of three subscriptions each**")
    section.add(table(["", ""], [
        ["from its start to the complete index", spread(ready, "s")],
        ["subscriptions, Kafka included", spread(rates, "/s")],
        ["resident memory then", f"{fleet.memory() / 1e6:,.0f} MB"]]))
    fleet.stop()


main()
