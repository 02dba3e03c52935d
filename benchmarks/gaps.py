# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What the minimum gap and budgets cost a push that they do not hold back, and what pushes cost that wait."""

import statistics
import time
import urllib.error

import metrics
import rig as rigs
import small_events
from fleet import BROKER, Fleet
from results import Target, spread, table
from rig import number

ROUNDS = number("BENCH_ROUNDS", 2)
WAITING = number("OVERLOAD_WAITING", 1_000_000)
WORKERS = 3
# Small events a second, each of a token that was sent nothing before.
RATE = 1000
# As in bench-latency: the embedded Kafka delays an empty fetch by all of its wait.
AT_ONCE = {} if BROKER else {"fetch.wait.max.ms": 0}
SETTINGS = {
    "neither": {},
    "a gap of 2 s and thinned budgets": {
        "planning.minimumGap.controls": "2s", "planning.budget.controls": 100,
        "planning.budget.thin": "true"},
    "a gap of 30 min, kept in the deferred topic": {"planning.minimumGap.controls": "30m"},
}
NEITHER, IN_MEMORY, IN_TOPIC = SETTINGS
SAME = Target(1.05, 1.02)
# Of a record as zstd leaves it in batches that the producer has waited for: the embedded Kafka's time goes by
# batches, and it keeps 5 MiB of a partition.
DEFERRED_BYTES = 150
BATCHES = {"linger.ms": 500, "compression.codec": "zstd"}
# The longest delay of a topic; all are deferred long before.
DELAY = "15m"
DEFERRED_MAX_SECONDS = 840


def minimum_gap(rig, section):
    rounds = {name: [] for name in SETTINGS}
    tokens = RATE * (small_events.SECONDS + small_events.WARM_UP)
    for turn in range(ROUNDS):
        for name, settings in SETTINGS.items():
            simulator = rig.simulator(f"apns-{len(rounds[name])}-{len(settings)}", keeps_log=True)
            fleet = Fleet(
                rig, simulator, tokens, properties=AT_ONCE, partitions=4, fan_outs=(1,),
                settings=settings)
            rounds[name].append(small_events.latencies(
                rig, small_events.begin(rig, fleet, simulator, rate=RATE, tokens=tokens), simulator))
            print(turn, name, rounds[name][-1], flush=True)
            fleet.stop()
            rig.end([simulator.process])
    section.add(
        f"**What the minimum gap costs.** {RATE:,} events a second, each of a token that was sent nothing before, so "
        f"that nothing has to wait; {ROUNDS} rounds of {small_events.SECONDS} s, with a new worker each. From "
        "the time at which an event is due to the moment at which the simulator takes its push.")
    base = rounds[NEITHER]
    rows = []
    for name, found in rounds.items():
        ratios = [own["p50"] / other["p50"] for own, other in zip(found, base)]
        judged = SAME.result(statistics.median(ratios)) if name == IN_MEMORY else ""
        rows.append([name, spread([own["p50"] for own in found]), spread(ratios),
                     spread([own["p99"] for own in found]), judged])
    section.add(table(["configured", "p50 ms", "× neither", "p99 ms", "p50 at most × 1.05"], rows))
    added = [own["p50"] - other["p50"] for own, other in zip(rounds[IN_TOPIC], base)]
    section.add(
        "A push with the long gap goes through the deferred topic: it is written, announced and "
        f"acknowledged twice before it is sent, {spread(added, 'ms')} here.")


def waiting(rig, section):
    simulator = rig.simulator("apns-waiting")
    fleet = Fleet(
        rig, simulator, WAITING, properties=BATCHES, partitions=12, fan_outs=(1,), workers=WORKERS,
        settings={"health.port": 0, "delivery.deferredMax": max(1000, WAITING // 2)},
        topics={"slow": (4, f"{{decode: json, delay: {DELAY}}}")},
        registered=["--everyone", WAITING],
        deferred=max(16, 2 * WAITING * DEFERRED_BYTES // rigs.PARTITION_BYTES))
    before = resident(fleet)
    idle = fleet.idle_share()
    begun = time.monotonic()
    event = small_events.flood(rig, fleet, "everyone", 1, 1, 0.5, topic="slow")
    while (count := sum(deferred(fleet))) < WAITING:
        if time.monotonic() - begun > DEFERRED_MAX_SECONDS:
            rigs.fail(f"{count:,.0f} of {WAITING:,} wait after {DEFERRED_MAX_SECONDS} s")
        time.sleep(1)
    seconds = time.monotonic() - begun
    rig.figures(event)
    # What was on its way has been acknowledged, and its memory given back.
    time.sleep(5)
    shares, after = deferred(fleet), resident(fleet)
    # By a worker that holds a third, not by what the fan-out took for a while.
    each = [(late - early) / share for early, late, share in zip(before, after, shares)]
    idle_after = fleet.idle_share()
    rows = [
        ["pushes that wait in the deferred topic", f"{sum(shares):,.0f}"],
        ["of one worker", f"{min(shares):,.0f} to {max(shares):,.0f}"],
        ["until all were deferred", f"{seconds:.0f} s, {WAITING / seconds:,.0f} a second"],
        ["RSS of a worker before", mebibytes(before)], ["with them", mebibytes(after)],
        ["more for each that waits", f"{min(each):,.0f} to {max(each):,.0f} bytes"],
        ["a core's share of all workers with nothing to do, before and after",
         f"{idle:.1%} and {idle_after:.1%}"]]
    section.add(
        f"**Many that wait.** One event of a topic with a delay of {DELAY} about {WAITING:,} tokens, "
        f"{WORKERS} workers in one group, each with all {WAITING:,} in its index.")
    section.add(table(["", ""], rows))
    fleet.stop()
    rig.end([simulator.process])


def deferred(fleet):
    """How many deferred pushes wait, by worker; 0 for one that was too busy to answer in time."""
    counts = []
    for worker in fleet.workers:
        try:
            text = metrics.read(metrics.url(worker.log.read_text(errors="replace")))
        except urllib.error.HTTPError:
            text = ""
        counts.append(metrics.total(text, "lamplighter_pushes_waiting", 'state="deferred"'))
    return counts


def resident(fleet):
    return [rigs.memory_bytes(worker, "VmRSS") for worker in fleet.workers]


def mebibytes(values):
    return " to ".join(f"{value / (1 << 20):,.0f}" for value in (min(values), max(values))) + " MiB"
