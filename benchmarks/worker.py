#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The whole worker beside h2load, alternating; see README.md."""

import statistics

from fleet import BROKER, Fleet
from results import RATIO_HEAD, Section, Target, plain, ratio_rows, ratios, spread, table
from rig import Rig, Yardstick, number

ROUNDS = number("BENCH_ROUNDS", 5)
PUSHES = number("PUSHES", 300_000)
SMALL = number("TOKENS", 100_000)
LARGE = number("TOKENS_LARGE", 5_000_000)
MIDDLE = number("TOKENS_MEMORY", 1_000_000)

WIDE = Target(1.25, 1.0)
TARGETS = {(1, False): Target(2.0, 1.6), (1, True): Target(2.5, 2.0)}
CASES = [(fan_out, json) for fan_out in (1, 10, 1000) for json in (False, True)]
GROWTH = Target(1.15, 1.15)
MEMORY = Target(350, 200, "MB")
IDLE = Target(1, 1, "%")


def words(case):
    fan_out, json = case
    return f"fan-out {fan_out:,}, {'JSON' if json else 'key-only'}"


def measure(
        rig, simulator, h2load, section, tokens, cases, transport="nghttp2", after=None, **options):
    """The cases in turn, each round after the yardstick; adds their table, returns the ratios."""
    fleet = Fleet(rig, simulator, tokens, transport, **options)
    fleet.run(10, min(PUSHES, 50_000))
    yardstick, figures = [], {case: [] for case in cases}
    for _ in range(ROUNDS):
        yardstick.append(h2load.run())
        print(f"h2load {yardstick[-1]:.2f} µs", flush=True)
        for case in cases:
            figures[case].append(fleet.run(case[0], PUSHES, json=case[1]))
            print(f"{tokens:,} tokens, {transport}, {words(case)} {figures[case][-1]:.2f} µs",
                  flush=True)
    section.add(f"**{tokens:,} tokens, {transport}**")
    section.add(table(RATIO_HEAD, ratio_rows(
        [(words(case), figures[case],
          TARGETS.get(case, WIDE) if transport == "nghttp2" else None) for case in cases],
        yardstick)))
    if after:
        after(fleet)
    fleet.stop()
    return {case: ratios(figures[case], yardstick) for case in cases}


def add_growth(section, small, large):
    rows = []
    for case in CASES:
        growth = [many / few for many, few in zip(large[case], small[case])]
        rows.append([words(case), spread(growth), *GROWTH.cells(statistics.median(growth))])
    section.add(f"**Growing from {SMALL:,} to {LARGE:,} tokens**, as a ratio of the ratios")
    section.add(table(["", "×", "must", "goal", "result"], rows))


def add_footprint(section):
    def add(fleet):
        memory, peak = fleet.memory() / 1e6, fleet.memory("VmHWM") / 1e6
        idle = [100 * fleet.idle_share() for _ in range(ROUNDS)]
        rows = [
            ["resident after full load", f"{plain(memory)} MB", *MEMORY.cells(memory)],
            ["resident at most, replay included", f"{plain(peak)} MB", "", "", ""],
            ["idle, of a core", spread(idle, "%"), *IDLE.cells(statistics.median(idle))],
        ]
        section.add(table(["", "", "must", "goal", "result"], rows))

    return add


def main():
    with Rig() as rig:
        kafka = "a real broker" if BROKER else "the embedded Kafka"
        section = Section(
            "worker", "The whole worker",
            f"make bench BENCH_ROUNDS={ROUNDS} PUSHES={PUSHES} TOKENS={SMALL} "
            f"TOKENS_MEMORY={MIDDLE} TOKENS_LARGE={LARGE}")
        section.add(
            f"From Kafka record to committed offset, {kafka}, {PUSHES:,} pushes a run, {ROUNDS} "
            "rounds, median (least–most). CPU of the whole process, librdkafka's threads "
            f"included. Each token has three subscriptions, of {MIDDLE:,} tokens two.")
        simulator = rig.simulator()
        h2load = Yardstick(rig, simulator, PUSHES)
        small = measure(rig, simulator, h2load, section, SMALL, CASES)
        measure(rig, simulator, h2load, section, SMALL, [(10, False)], "curl")
        # The index has its promised shape, two subscriptions for each token. fetch.wait.max.ms has
        # its default, since with a short one an idle worker would fetch all the time.
        measure(
            rig, simulator, h2load, section, MIDDLE, [(10, False)], after=add_footprint(section),
            fan_outs=(1, 10), properties={"fetch.wait.max.ms": 500})
        large = measure(rig, simulator, h2load, section, LARGE, CASES)
        add_growth(section, small, large)
        section.write()


main()
