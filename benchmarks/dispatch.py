#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""A transport alone beside h2load, alternating; see README.md."""

from results import RATIO_HEAD, Section, Target, ratio_rows, table
from rig import Rig, Yardstick, number

ROUNDS = number("BENCH_ROUNDS", 5)
PUSHES = number("PUSHES", 1_000_000)
TARGET = Target(0.9, 0.75)
CASES = [
    ("nghttp2", ["--transport", "nghttp2"], TARGET),
    ("nghttp2, without apns-id", ["--transport", "nghttp2", "--without-apns-id"], TARGET),
    # This transport has no target: it is for networks with a proxy.
    ("curl", ["--transport", "curl"], None),
    ("curl, without apns-id", ["--transport", "curl", "--without-apns-id"], None),
]


def main():
    command = f"make bench-dispatch BENCH_ROUNDS={ROUNDS} PUSHES={PUSHES}"
    with Rig() as rig:
        section = Section("dispatch", "Dispatch: a transport alone", command)
        simulator = rig.simulator()
        h2load = Yardstick(rig, simulator, PUSHES)
        yardstick, figures = [], {name: [] for name, _, _ in CASES}
        repeated = {name: 0 for name, _, _ in CASES}
        for _ in range(ROUNDS):
            yardstick.append(h2load.run())
            print(f"h2load {yardstick[-1]:.2f} µs", flush=True)
            for name, options, _ in CASES:
                run = rig.bench(
                    "dispatch", *simulator.dispatch_arguments(), "--pushes", PUSHES, *options)
                figures[name].append(run["cpuMicroseconds"] / PUSHES)
                repeated[name] += run["repeated"]
                print(f"{name} {figures[name][-1]:.2f} µs, {run['seconds']:.1f} s", flush=True)
    cases = [(name, figures[name], target) for name, _, target in CASES]
    section.add(
        f"{PUSHES:,} pushes a run, each to a token of its own; {ROUNDS} rounds, median "
        "(least–most). CPU of the whole process, after the connection was warm.")
    section.add(table(RATIO_HEAD, ratio_rows(cases, yardstick)))
    again = [f"{name} {count}" for name, count in repeated.items() if count]
    if again:
        section.add("Pushes that had to be sent once more: " + ", ".join(again) + ".")
    section.write()


main()
