#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Event to acceptance at fixed rates, open loop; see README.md."""

import pathlib
import statistics

import plot
import stages
from fleet import BROKER, Fleet
from results import Section, Target, spread, table
from rig import Rig, Yardstick, number

ROUNDS = number("BENCH_ROUNDS", 5)
SECONDS = number("LATENCY_SECONDS", 5)
# The rates in pushes per second, and the fan-outs: tokens per event.
RATES = [10_000, 50_000, 100_000]
FAN_OUTS = [10, 1]
WARM_UP = 2
YARDSTICK_PUSHES = 300_000
# The rate with a promise: percentile, required and desired value.
JUDGED = 50_000
TARGETS = {"p50": Target(3, 1.5, "ms"), "p99": Target(15, 8, "ms")}
# Streams ÷ round trip: 1,000 streams and 50 ms are 20,000 a second for each connection.
SIMULATORS = [
    ("0", None, {}), ("50 ms", "50ms", {"connections": 8, "connectionsMax": 8})]
# The embedded Kafka answers a fetch with one batch per partition, and a burst is a batch.
PARTITIONS = 4
# A Kafka answers a fetch when there is something to read. The embedded one looks once: if there is
# nothing, it answers after the whole of `fetch.wait.max.ms`, whatever has come by then.
PROPERTIES = {} if BROKER else {"fetch.wait.max.ms": 0}
HEAD = ["pushes/s", "fan-out", "p50 ms", "p99 ms", "p99.9 ms", "most ms", "behind schedule ms",
        "result"]


def measure(rig, h2load, yardstick, delay, apns):
    """The runs by fan-out and rate, in turn."""
    simulator = rig.simulator(f"apns-{delay or 'at-once'}", delay, keeps_log=True)
    tokens = max(RATES) * (SECONDS + WARM_UP)
    fleet = Fleet(
        rig, simulator, tokens, properties=PROPERTIES, apns=apns, partitions=PARTITIONS)
    fleet.run(10, 50_000)
    runs = {(fan_out, rate): [] for fan_out in FAN_OUTS for rate in RATES}
    for _ in range(ROUNDS):
        yardstick.append(h2load.run())
        for (fan_out, rate), figures in runs.items():
            figures.append(rig.bench(
                "latency", "--bootstrap", fleet.bootstrap, "--topic", fleet.topic("events"),
                "--group", fleet.prefix, "--tokens", tokens, "--rate", rate, "--fan-out", fan_out,
                "--seconds", SECONDS, "--warm-up", WARM_UP, "--answers", simulator.log))
            print(delay, fan_out, rate, figures[-1]["milliseconds"], flush=True)
            # The next run reads from the log's end.
            simulator.log.open("w").close()
    fleet.stop()
    rig.end([simulator.process])
    return runs


def result(rate, runs):
    missing = statistics.median(run["missing"] / run["pushes"] for run in runs)
    if missing:
        return f"{missing:.1%} dropped by the embedded Kafka before they were read"
    if rate != JUDGED:
        return ""
    medians = {name: statistics.median(run["milliseconds"][name] for run in runs)
               for name in TARGETS}
    return "; ".join(
        f"{name} ({target.must}/{target.goal}): {target.result(medians[name])}"
        for name, target in TARGETS.items())


def rows(runs):
    for (fan_out, rate), figures in runs.items():
        columns = [[run["milliseconds"][name] for run in figures]
                   for name in ("p50", "p99", "p99.9", "max")]
        columns.append([run["scheduleLagMilliseconds"] for run in figures])
        yield [f"{rate:,}", str(fan_out), *map(spread, columns), result(rate, figures)]


def main():
    with Rig() as rig:
        section = Section(
            "latency", "Latency: event to acceptance",
            f"make bench-latency BENCH_ROUNDS={ROUNDS} LATENCY_SECONDS={SECONDS}")
        h2load, yardstick = Yardstick(rig, rig.simulator(), YARDSTICK_PUSHES), []
        kafka = ("a real broker" if BROKER
                 else "the embedded Kafka, which is asked again at once (`fetch.wait.max.ms=0`)")
        results = [(name, measure(rig, h2load, yardstick, delay, apns))
                   for name, delay, apns in SIMULATORS]
        section.add(
            f"Open loop, {SECONDS} s a run, {ROUNDS} rounds, median (least–most), {kafka}, "
            f"{PARTITIONS} partitions of events. Events are due in bursts, "
            "one each millisecond, which the producer sends as one batch at once to the partitions "
            "in turn: it does not linger. From "
            "the time on the event's schedule to the moment at which the simulator takes the "
            "request; its delay comes after that, and is not in "
            f"the figures. h2load takes {spread(yardstick, 'µs')} of CPU a request here.")
        for name, runs in results:
            file = f"latency-{name.replace(' ', '')}.svg"
            plot.write(
                pathlib.Path(__file__).with_name(file),
                f"Simulator's delay {name}, fan-out {FAN_OUTS[0]}",
                [(f"{rate:,}/s", typical(runs[FAN_OUTS[0], rate])) for rate in RATES])
            section.add(f"**Simulator's delay {name}** ([distribution]({file}))")
            section.add(table(HEAD, rows(runs)))
        add_stages(rig, section)
        section.write()


def add_stages(rig, section):
    """Adds where the time is spent, in runs of their own at the rate with a promise."""
    totals, spent = stages.measure(
        rig, JUDGED, FAN_OUTS[0], SECONDS, WARM_UP, ROUNDS, partitions=PARTITIONS,
        properties=PROPERTIES)
    names = list(stages.STAGES)

    def values(stage, key):
        return [figures[key] for figures in spent[stage]]
    # What is left of the median: the spans begin when the event has been read.
    before = [
        total["p50"] - sum(values(stage, "p50")[turn] for stage in names[:2])
        - values(names[2], "p50")[turn] / 2 for turn, total in enumerate(totals)]
    section.add(
        f"**Where the time goes**, at {JUDGED:,} pushes/s and fan-out {FAN_OUTS[0]}, delay 0, in "
        f"{ROUNDS} runs of their own in which {stages.SAMPLING:.0%} of the events are traced "
        "(`otlp.sampling`). The first line is what is left of the median of all when those of the "
        "others are taken away, the last one by half.")
    section.add(table(["", "what happens", "p50 ms", "p99 ms"], [
        ["due → read", "the producer, Kafka, librdkafka's fetch", spread(before), ""],
        *([stage, stages.STAGES[stage], spread(values(stage, "p50")), spread(values(stage, "p99"))]
          for stage in names),
        ["due → taken by the simulator", "all of it",
         *(spread([total[key] for total in totals]) for key in ("p50", "p99"))]]))


def typical(runs):
    """The distribution of the run in the middle, by its p99."""
    ordered = sorted(runs, key=lambda run: run["milliseconds"]["p99"])
    return ordered[len(ordered) // 2]["distribution"]


main()
