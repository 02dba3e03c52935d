#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""More threads, workers and connections: what limits each, and unit costs; see README.md."""

import dataclasses
import statistics

import rig as rigs
from fleet import BROKER, Fleet
from results import Section, ratios, spread, table
from rig import Rig, Yardstick, number
from watch import KINDS, OTHER, SIMULATOR, Mark, Watch

ROUNDS = number("BENCH_ROUNDS", 5)
# The number of tokens, each of which gets one push in a run, so that nothing waits for a commit.
PUSHES = number("PUSHES", 500_000)
STARTS = [number("TOKENS", 1_000_000), number("TOKENS_LARGE", 5_000_000)]

# A thread, the cores or the streams count as used up if less than a tenth of them is free.
FULL = 0.9
STREAMS = 1000


@dataclasses.dataclass(frozen=True)
class Setup:
    workers: int = 1
    # The number of delivery threads of each worker.
    threads: int = 1
    # The number of connections of each thread, which adds no more.
    connections: int = 4
    # The delay of APNs's answers, in milliseconds.
    delay: int = 0

    def start(self, fleet):
        fleet.simulator.command(f"delay {self.delay}ms")
        fleet.restart(
            self.workers, self.threads,
            {"connections": self.connections, "connectionsMax": self.connections})

    def rate_max(self):
        """Streams ÷ round trip, where there is a distance."""
        streams = self.workers * self.threads * self.connections * STREAMS
        return 1000 * streams / self.delay if self.delay else None


# Fan-out, and whether the events are JSON.
TEN, ONE, ONE_JSON, THOUSAND = (10, False), (1, False), (1, True), (1000, False)
BASE = Setup()
# Each worker has four connections, however many threads it has.
SHAPES = [BASE, Setup(threads=2, connections=2), Setup(threads=4, connections=1),
          Setup(workers=2), Setup(workers=3)]
FAR = [Setup(connections=connections, delay=50) for connections in (1, 2, 4)]
UNIT_CASES = [ONE, ONE_JSON, TEN, THOUSAND]
PLAN = {**{setup: [TEN, ONE] for setup in SHAPES}, **{setup: [TEN] for setup in FAR},
        BASE: UNIT_CASES}


class Run:
    def __init__(self, fleet, case, pushes):
        fan_out, json = case
        with Watch(fleet, pushes) as watch:
            self.microseconds = fleet.run(fan_out, pushes, json)
        self.whole, self.middle = watch.whole(), watch.middle()


def measure(fleet, h2load):
    """The yardstick, and the runs by setup and case, all in turn."""
    yardstick, runs = [], {(setup, case): [] for setup, cases in PLAN.items() for case in cases}
    for _ in range(ROUNDS):
        fleet.simulator.command("delay 0ms")
        yardstick.append(h2load.run())
        print(f"h2load {yardstick[-1]:.2f} µs", flush=True)
        for setup, cases in PLAN.items():
            setup.start(fleet)
            for case in cases:
                run = Run(fleet, case, PUSHES // 2 if setup.delay else PUSHES)
                runs[setup, case].append(run)
                print(f"{setup}, {words(case)}: {run.middle.rate():,.0f}/s, "
                      f"{run.microseconds:.2f} µs", flush=True)
    fleet.simulator.command("delay 0ms")
    return yardstick, runs


# The rate is measured in the middle of a run: at its start and end threads lack work.
BUSY = {
    **{kind: lambda run, kind=kind: run.middle.busiest(kind)
       for kind in [*KINDS.values(), SIMULATOR]},
    "all cores": lambda run: run.middle.cores()}
LOAD_HEAD = [*BUSY, "used up"]


def load_cells(setup, runs):
    """Who was busy while the runs had their rate, and what of it or the streams was used up."""
    shares = {name: statistics.median(map(share, runs)) for name, share in BUSY.items()}
    cells = [f"{share:.0%}" for share in shares.values()]
    if setup.delay:
        shares["streams"] = statistics.median(
            run.middle.rate() / setup.rate_max() for run in runs)
    used = [name for name, share in shares.items() if share >= FULL]
    return [*cells, ", ".join(used) or "nothing"]


def rates(runs):
    return spread([run.middle.rate() for run in runs])


def words(case):
    fan_out, json = case
    return f"fan-out {fan_out:,}, {'JSON' if json else 'key-only'}"


def plural(count, noun):
    return f"{count} {noun}" + ("s" if count > 1 else "")


def add_shapes(section, runs, yardstick):
    for case in (TEN, ONE):
        rows = []
        for setup in SHAPES:
            figures = [run.microseconds for run in runs[setup, case]]
            each = " each" if setup.workers > 1 else ""
            rows.append([
                f"{plural(setup.workers, 'worker')}, {plural(setup.threads, 'thread')}{each}",
                rates(runs[setup, case]), spread(figures), spread(ratios(figures, yardstick)),
                *load_cells(setup, runs[setup, case])])
        section.add(f"**Threads and workers, {words(case)}**, four connections a worker")
        section.add(table(["", "pushes/s", "µs of CPU per push", "× h2load", *LOAD_HEAD], rows))


def add_far(section, runs):
    rows = [
        [str(setup.connections), rates(runs[setup, TEN]), f"{setup.rate_max():,.0f}",
         *load_cells(setup, runs[setup, TEN])]
        for setup in FAR]
    section.add(
        f"**Connections of one thread, {words(TEN)}**, answers after {FAR[0].delay} ms")
    section.add(table(["", "pushes/s", "streams ÷ round trip", *LOAD_HEAD], rows))


def add_units(section, runs):
    """What a push costs each thread, and how many it could do with a core of its own."""
    rows = []
    for setup, case in [*((BASE, case) for case in UNIT_CASES), (FAR[0], TEN)]:
        costs = {kind: [run.whole.microseconds(kind) for run in runs[setup, case]]
                 for kind in [*KINDS.values(), OTHER]}
        ceilings = [f"{1e6 / statistics.median(costs[kind]):,.0f}"
                    for kind in ("planner", "delivery")]
        # Far from full, where batches are small.
        name = words(case) + (f", {setup.delay} ms, one connection" if setup.delay else "")
        rows.append([name, *map(spread, costs.values()), *ceilings])
    section.add("**µs of CPU per push by thread, and pushes/s that fill a core of its own**")
    section.add(table(
        ["", *KINDS.values(), OTHER, "a planner's core", "a delivery thread's core"], rows))


def add_starts(rig, simulator, section):
    """What a worker does before it is ready, and its memory, with few tokens and with many."""
    rows, memory = [], []
    for tokens in STARTS:
        # Two subscriptions for each token.
        fleet = Fleet(rig, simulator, tokens, fan_outs=(1, 10))
        seconds, costs = [], {kind: [] for kind in KINDS.values() if kind != "delivery"}
        for _ in range(ROUNDS):
            fleet.restart()
            seconds.append(fleet.ready_seconds)
            mark = Mark(fleet)
            for kind, figures in costs.items():
                figures.append(mark.seconds(kind) * 1e6 / tokens)
        # Measured while every buffer is in use.
        fleet.run(10, min(PUSHES, tokens))
        memory.append([fleet.memory(line) for line in ("VmRSS", "VmHWM")])
        rows.append([
            f"{tokens:,}", spread(seconds, "s"), *map(spread, costs.values()),
            *(f"{each / 1e6:,.0f} MB" for each in memory[-1])])
        fleet.stop()
    more = STARTS[1] - STARTS[0]
    rows.append(["each token more", *[""] * 3, *(
        f"{(large - small) / more:.0f} B" for small, large in zip(*memory))])
    section.add(
        "**A worker's start**: one registration a token, two subscriptions each, read from Kafka "
        f"in µs of CPU a registration; its memory after {PUSHES:,} pushes")
    section.add(table(
        ["tokens", "until the index is complete", *costs, "resident", "at most"], rows))


def main():
    if STARTS[0] >= STARTS[1]:
        rigs.fail("TOKENS_LARGE is to be above TOKENS")
    with Rig() as rig:
        kafka = "a real broker" if BROKER else "the embedded Kafka"
        section = Section(
            "scaling", "Scaling, and what each thread costs",
            f"make bench-scaling BENCH_ROUNDS={ROUNDS} PUSHES={PUSHES} TOKENS={STARTS[0]} "
            f"TOKENS_LARGE={STARTS[1]}")
        # With one thread this would be the limit of most runs.
        simulator = rig.simulator(threads=2)
        h2load = Yardstick(rig, simulator, PUSHES)
        fleet = Fleet(rig, simulator, PUSHES)
        yardstick, runs = measure(fleet, h2load)
        fleet.stop()
        section.add(
            f"Workers of one group, {kafka}, {PUSHES:,} tokens, each pushed to once a run, "
            f"{ROUNDS} rounds, median (least–most). {STREAMS:,} streams a connection. h2load takes "
            f"{spread(yardstick, 'µs')} of CPU a request here. A thread's column is what the "
            "busiest of its kind takes of a core while the middle 80 % of the pushes are sent; all "
            "cores are shared with simulator, Kafka and producer. Used up is what has less than "
            f"{1 - FULL:.0%} to spare.")
        add_shapes(section, runs, yardstick)
        add_far(section, runs)
        add_units(section, runs)
        add_starts(rig, simulator, section)
        section.write()


main()
