#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""More than APNs takes: a stall under full input, a hot subject, floods; see README.md."""

import os
import pathlib
import statistics
import time
import urllib.error

import metrics
import gaps
import plot
import rig as rigs
import small_events
from fleet import BROKER, Fleet
from results import Section, Target, plain, spread, table
from rig import Rig, fail, number

ROUNDS = number("BENCH_ROUNDS", 2)
TOKENS = number("OVERLOAD_TOKENS", 200_000)
STALL = number("OVERLOAD_STALL", 60)
# Events a second during the stall, from before it begins until after it has ended.
RATE = number("OVERLOAD_RATE", 10_000)
HOT = number("OVERLOAD_HOT", 1_000_000)
BEFORE, AFTER = 5, 10
DRAIN_MAX = 1200
# APNs answers after so many milliseconds, on so many streams: 4,000 pushes a second.
DELAY, STREAMS = 50, 200
FLOODED = 40_000
FLOOD_RATE = 2 * STREAMS * 1000 // DELAY
RATIO = Target(2, 1.2)
OTHER_APP = "com.example.Lamps"
# The embedded Kafka delays an empty fetch by all of its wait.
PROPERTIES = {} if BROKER else {"fetch.wait.max.ms": 1}
DEFERRED_BYTES = 400


# MARK: A stall


class Watch:
    """Looks at a worker once a second."""

    def __init__(self, rig, fleet, simulator):
        self.worker, self.simulator = fleet.workers[0], simulator
        rig.wait_for("metrics", 30, lambda: metrics.url(self._said()))
        self.url, self.begun = metrics.url(self._said()), time.monotonic()
        self.samples, self.buckets, self.accepted = [], {}, simulator.accepted()
        # Pushes that wait and events that are not read yet, at the last look.
        self.waiting = 0
        self.unanswered = 0

    def _said(self):
        return self.worker.log.read_text(errors="replace")

    def now(self):
        return time.monotonic() - self.begun

    def look(self):
        """Takes a sample, unless the planner was too busy to answer in time."""
        try:
            text = metrics.read(self.url)
        except urllib.error.HTTPError:
            self.unanswered += 1
            return
        waiting = metrics.total(text, "lamplighter_pushes_waiting")
        unread = metrics.total(text, "lamplighter_topic_unread_records", 'events"')
        accepted = self.simulator.accepted()
        buckets = metrics.latencies(text)
        new = {bound: count - self.buckets.get(bound, 0) for bound, count in buckets.items()}
        sample = {
            "pushes that wait": waiting, "events not read yet": unread,
            "RSS MiB": rigs.memory_bytes(self.worker, "VmRSS") / (1 << 20),
            "accepted a second": accepted - self.accepted}
        latency = metrics.quantile(new, 0.99)
        if latency is not None:
            sample["p99 s"] = latency
        self.buckets, self.accepted = buckets, accepted
        self.samples.append((self.now(), sample))
        self.waiting = waiting + unread

    def until(self, end, waiting_min=0):
        """Looks once a second until `end`, or until less waits; returns the time at which it stopped."""
        while self.now() < end:
            time.sleep(max(0, 1 - self.now() % 1))
            self.look()
            if self.waiting < waiting_min:
                break
        return self.now()

    def outcomes(self):
        """How many pushes have ended unsent."""
        text = metrics.read(self.url)
        accepted = metrics.total(text, "lamplighter_pushes_total", 'outcome="accepted"')
        return metrics.total(text, "lamplighter_pushes_total") - accepted


def stall(rig, section):
    simulator = rig.simulator("apns-stall", threads=1)
    fleet = Fleet(
        rig, simulator, TOKENS, partitions=16, fan_outs=(1,), settings={"health.port": 0},
        deferred=max(16, 2 * TOKENS * DEFERRED_BYTES // rigs.PARTITION_BYTES))
    watch = Watch(rig, fleet, simulator)
    idle = fleet.memory()
    accepted = simulator.accepted()
    events = small_events.flood(rig, fleet, "door", TOKENS, RATE, BEFORE + STALL + AFTER)
    watch.until(BEFORE)
    simulator.command("stall on")
    begun = watch.until(BEFORE + STALL)
    simulator.command("stall off")
    watch.until(begun + AFTER)
    written = rig.figures(events)["events"]
    # What comes at full input in a second is no backlog.
    drained = min(RATE / 10, TOKENS / 100)
    ended = watch.until(begun + DRAIN_MAX, waiting_min=drained)
    if watch.waiting >= drained:
        fail(f"{watch.waiting:,.0f} still wait {DRAIN_MAX} s after the stall")
    time.sleep(3)
    watch.look()
    most, unread = (
        max(sample[name] for _, sample in watch.samples)
        for name in ("pushes that wait", "events not read yet"))
    pushes = simulator.accepted() - accepted
    rows = [
        ["events", f"{written:,}"], ["pushes accepted", f"{pushes:,}"],
        ["pushes that have ended unsent", f"{watch.outcomes():,.0f}"],
        ["pushes that waited, at most", f"{most:,.0f}"],
        ["events not read yet, at most", f"{unread:,.0f}"],
        ["RSS before", f"{idle / (1 << 20):,.0f} MiB"],
        ["RSS at most", f"{fleet.memory('VmHWM') / (1 << 20):,.0f} MiB"],
        ["from the end of the stall until nothing waited", f"{ended - begun:.0f} s"],
        ["requests of /metrics, one a second, that were answered with 503",
         f"{watch.unanswered} of {watch.unanswered + len(watch.samples)}"]]
    section.add(
        f"**A stall.** {RATE:,} events a second about {TOKENS:,} tokens, one each, in turn; APNs reads "
        f"requests and answers none for {STALL} s, and events go on for {AFTER} s after it. One worker. "
        "[Over time](overload.svg): once as many pushes wait as it may hold, the worker reads no more, and "
        "what comes is among the events not read yet.")
    section.add(table(["", ""], rows))
    names = ["pushes that wait", "events not read yet", "accepted a second", "p99 s", "RSS MiB"]
    plot.write_series(
        pathlib.Path(__file__).with_name("overload.svg"),
        f"APNs stalled for {STALL} s under {RATE:,} events/s about {TOKENS:,} tokens",
        [(name, [(at / 60, sample[name]) for at, sample in watch.samples if name in sample])
         for name in names],
        [(BEFORE / 60, "stalled"), (begun / 60, "answers again"), (ended / 60, "drained")])
    fleet.stop()
    rig.end([simulator.process])


# MARK: A hot subject


def hot(rig, section):
    hot_case(rig, section, 0, {}, "APNs answers at once, so the cores are what limits all of them")


def hot_away(rig, section):
    hot_case(
        rig, section, DELAY, {"connections": 1, "connectionsMax": 1},
        f"APNs answers after {DELAY} ms on one connection of each worker, so {1000 // DELAY},000 pushes a second "
        "each")


def hot_case(rig, section, delay, apns, title):
    section.add(
        f"**A hot subject.** One event to {HOT:,} tokens, and {small_events.RATE} events a second beside it of a "
        f"token each. {title}. Memory is that of the worker that takes most; latency is from the time at which a "
        "small event is due to the moment at which the simulator takes its push, and to its answer where that "
        "takes time.")
    simulator = rig.simulator(
        f"apns-hot-{delay}", f"{delay}ms" if delay else None, keeps_log=True, threads=2)
    fleet = Fleet(
        rig, simulator, small_events.TOKENS + HOT, properties=PROPERTIES, partitions=12, fan_outs=(1,),
        settings={"health.port": 0}, apns=apns, registered=["--everyone", HOT])
    rows, again = [], []
    for workers in (1, 2, 3):
        if workers > 1:
            fleet.restart(workers=workers)
        # Connections are opened, and the worker has read its own code.
        rig.figures(small_events.begin(rig, fleet, simulator, seconds=1))
        quiet = delay + small_events.p99(rig, small_events.begin(rig, fleet, simulator), simulator)
        # About as long as the event takes, and no longer.
        small_seconds = min(30, small_events.SECONDS + HOT // (60_000 * (3 if delay else 1)))
        beside = small_events.begin(rig, fleet, simulator, small_seconds)
        time.sleep(2 + small_events.WARM_UP)
        seconds = one_event(rig, fleet, simulator, small_seconds)
        busy = delay + small_events.p99(rig, beside, simulator)
        rows.append([
            str(workers), f"{seconds:.1f} s", f"{HOT / seconds:,.0f}",
            f"{fleet.memory('VmHWM') / (1 << 20):,.0f} MiB", plain(quiet), plain(busy),
            plain(busy / quiet), RATIO.result(busy / quiet)])
        print(*rows[-1], flush=True)
        busy, pushes = repeated(rig, fleet, simulator, delay)
        again.append([str(workers), pushes, plain(busy), plain(busy / quiet)])
        print(*again[-1], flush=True)
    section.add(table(
        ["workers", "until all were accepted", "pushes/s", "memory at most", "p99 ms in quiet",
         "p99 ms beside it", "ratio", "at most 2"], rows))
    section.add("Ten such events a second for 10 s, with the same small events beside them:")
    section.add(table(["workers", "pushes", "p99 ms beside them", "ratio"], again))
    fleet.stop()
    rig.end([simulator.process])


def one_event(rig, fleet, simulator, small_seconds):
    """The seconds from an event to its last acceptance, while small events come for so long."""
    before, begun = simulator.accepted(), time.monotonic()
    event = small_events.flood(rig, fleet, "everyone", 1, 1, 0.5)

    def is_over():
        # The pushes of small events are accepted meanwhile, too.
        small = small_events.RATE * min(time.monotonic() - begun, small_seconds)
        return simulator.accepted() - before >= HOT + small
    rig.wait_for("its pushes", 900, is_over)
    seconds = time.monotonic() - begun
    rig.figures(event)
    return seconds


def repeated(rig, fleet, simulator, delay):
    """Ten events a second about it: the p99 of the small events meanwhile, in ms, and what the pushes were."""
    before = simulator.accepted()
    beside = small_events.begin(rig, fleet, simulator, 10)
    time.sleep(2 + small_events.WARM_UP)
    events = rig.figures(small_events.flood(rig, fleet, "everyone", 1, 10, 10))["events"]
    busy = delay + small_events.p99(rig, beside, simulator)
    await_end(rig, fleet)
    return busy, f"{simulator.accepted() - before:,} instead of {events * HOT:,}"


# MARK: Floods


def floods(rig, section):
    simulator = rig.simulator(
        "apns-floods", f"{DELAY}ms", keeps_log=True, apps=[OTHER_APP])
    fleet = Fleet(
        rig, simulator, small_events.TOKENS, properties=PROPERTIES, partitions=4, fan_outs=(1,), deferred=16,
        settings={"health.port": 0},
        apns={"connections": 1, "connectionsMax": 1, "streamsMax": STREAMS}, apps=[OTHER_APP],
        topics={"lamps": (4, f"{{app: {OTHER_APP}, decode: json}}")},
        registered=["--phones", FLOODED, "--lamps", FLOODED])
    cases = {
        "background pushes of the same app, events in the same topic": ("phone", "events"),
        "controls of another app, events in another topic": ("lamp", "lamps")}
    rig.figures(small_events.begin(rig, fleet, simulator, seconds=1))
    quiet, busy = [], {case: [] for case in cases}
    for _ in range(ROUNDS):
        quiet.append(small_events.p99(rig, small_events.begin(rig, fleet, simulator), simulator) + DELAY)
        for case, (subject, topic) in cases.items():
            events = small_events.flood(
                rig, fleet, subject, FLOODED, FLOOD_RATE, 4 + small_events.WARM_UP + small_events.SECONDS, topic)
            time.sleep(2)
            busy[case].append(small_events.p99(rig, small_events.begin(rig, fleet, simulator), simulator) + DELAY)
            rig.figures(events)
            await_end(rig, fleet)
            print(case, quiet[-1], busy[case][-1], flush=True)
    section.add(
        f"**Floods.** {small_events.RATE} small events a second of a control each, alone and while {FLOOD_RATE:,} "
        f"other events a second come about {FLOODED:,} tokens; APNs takes {STREAMS * 1000 // DELAY:,} pushes "
        f"a second. p99 from the time at which a small event is due to APNs's answer; {ROUNDS} rounds.")
    rows = [["alone", spread(quiet), "1", ""]]
    for case, values in busy.items():
        ratios = [own / alone for own, alone in zip(values, quiet)]
        rows.append([case, spread(values), spread(ratios), RATIO.result(statistics.median(ratios))])
    section.add(table(["beside", "p99 ms", "× alone", "at most 2"], rows))
    fleet.stop()
    rig.end([simulator.process])


def await_end(rig, fleet):
    """Returns when all events are read and no push waits."""
    def is_over():
        for worker in fleet.workers:
            text = metrics.read(metrics.url(worker.log.read_text(errors="replace")))
            unread = sum(
                metrics.total(text, "lamplighter_topic_unread_records", f'"{fleet.topic(name)}"')
                for name in ("events", "lamps", "deferred"))
            if unread + metrics.total(text, "lamplighter_pushes_waiting"):
                return False
        return True
    for _ in range(2):
        rig.wait_for("the last pushes", 300, is_over)
        time.sleep(1)


PARTS = {
    "stall": ("A stall of APNs under full input", stall, {
        "OVERLOAD_TOKENS": TOKENS, "OVERLOAD_STALL": STALL, "OVERLOAD_RATE": RATE}),
    "hot": ("A hot subject", hot, {"OVERLOAD_HOT": HOT}),
    "hot-away": ("A hot subject, with APNs away", hot_away, {"OVERLOAD_HOT": HOT}),
    "waiting": ("Many pushes that wait", gaps.waiting, {"OVERLOAD_WAITING": gaps.WAITING}),
    "gaps": ("Minimum gap and budgets", gaps.minimum_gap, {"BENCH_ROUNDS": gaps.ROUNDS}),
    "floods": ("Floods beside small events", floods, {"BENCH_ROUNDS": ROUNDS}),
}


def main():
    chosen = os.environ.get("OVERLOAD_PARTS", " ".join(PARTS)).split()
    if unknown := set(chosen) - set(PARTS):
        fail(f"OVERLOAD_PARTS is some of {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    with Rig() as rig:
        for name in chosen:
            title, part, sizes = PARTS[name]
            said = "".join(f" {key}={value}" for key, value in sizes.items())
            section = Section(
                f"overload-{name}", title, f"make bench-overload OVERLOAD_PARTS={name}{said}")
            section.add(f"Kafka is {'a real broker' if BROKER else 'the embedded one'}.")
            begun = time.monotonic()
            part(rig, section)
            print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
            section.write()


main()
