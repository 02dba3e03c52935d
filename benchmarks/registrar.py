#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Acknowledged registrations a second, what each costs, and the memory of a million; see README.md."""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "Tests/Registrar"), str(HERE.parent / "scripts")]
os.environ["LAMPLIGHTER_PROGRAMS"] = str(HERE.parent / ".build/release")

from environments import python_of  # noqa: E402
from registrars import ENVIRONMENT, Registrars, request  # noqa: E402
from results import Section, Target, plain, spread, table  # noqa: E402
from rig import fail, number  # noqa: E402

ROUNDS = number("BENCH_ROUNDS", 5)
SECONDS = number("LATENCY_SECONDS", 6)
MILLION = 1_000_000
# As many writes are under way at a time.
CONNECTIONS = 64
# Any but that of the registrations, which the registrar reads.
BARE_TOPIC = "lamplighter.suppressions"
# Of the registrar's own CPU, since the client and Kafka share the machine with it.
TARGET = Target(5000, 8000, "/s", more_is_better=True)


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(registrars, seconds, first):
    """Registers installations, each once, and returns how many were acknowledged, and refused."""
    run = subprocess.run(
        ["wrk", "--threads", "1", "--connections", str(CONNECTIONS), "--duration", f"{seconds}s", "--latency", "--script",
         HERE / "registrar.lua", f"http://127.0.0.1:{registrars.ports['one']}"],
        capture_output=True, text=True, check=True,
        env={**ENVIRONMENT, "KEY": registrars.key, "FIRST": str(first)})
    total = int(re.search(r"(\d+) requests in", run.stdout)[1])
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", run.stdout)
    latency = re.search(r"99%\s+([\d.]+)(us|ms|s)", run.stdout)
    milliseconds = float(latency[1]) * {"us": 0.001, "ms": 1, "s": 1000}[latency[2]]
    return total, int(refused[1]) if refused else 0, milliseconds


def write_bare(registrars, seconds):
    """What a producer alone takes for as many writes at a time: acknowledged a second, a CPU second, and p99 in ms."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": registrars.bootstrap, "acks": "all", "linger.ms": 5})
    value, under_way, times = bytes(200), 0, []

    def acknowledged(begun):
        def note(error, _):
            nonlocal under_way
            if error:
                fail(f"a bare write was refused: {error}")
            under_way -= 1
            times.append(time.monotonic() - begun)
        return note

    begun, before, number = time.monotonic(), time.process_time(), 0
    while time.monotonic() - begun < seconds:
        while under_way < CONNECTIONS:
            number, under_way = number + 1, under_way + 1
            producer.produce(BARE_TOPIC, value, f"{number}", on_delivery=acknowledged(time.monotonic()))
        producer.poll(0.01)
    producer.flush(10)
    took, spent = time.monotonic() - begun, time.process_time() - before
    return len(times) / took, len(times) / spent, 1000 * statistics.quantiles(times, n=100)[98]


def metric(registrars, name):
    text = request(registrars.healths["one"], "GET", "/metrics")[2]
    return int(re.search(rf"^{name} (\d+)$", text, re.M)[1])


def main():
    python = python_of("registrar")
    if pathlib.Path(sys.executable) != pathlib.Path(python):
        os.execv(python, [python, *sys.argv])
    for product in ("lamplighter", "lamplighter-lab"):
        subprocess.run(["swift", "build", "-c", "release", "--product", product], check=True)
    section = Section(
        "registrar", "The registrar", f"make bench-registrar BENCH_ROUNDS={ROUNDS} LATENCY_SECONDS={SECONDS}")
    rates, per_core, tails, bare = [], [], [], []
    registrars = Registrars()
    try:
        registrars.start_registrar("one", auth={"serviceKeysFile": str(registrars.folder / "keys")},
                                   requestsPerSecond=1_000_000)
        registrars.wait_until_ready("one")
        pid = registrars.running["one"].pid
        total, _, _ = load(registrars, 2, 0)
        for _ in range(ROUNDS):
            before, begun = cpu_seconds(pid), time.monotonic()
            count, refused, tail = load(registrars, SECONDS, total)
            spent, took = cpu_seconds(pid) - before, time.monotonic() - begun
            total += count
            if refused:
                fail(f"{refused} registrations were refused")
            rates.append(count / took)
            per_core.append(count / spent)
            tails.append(tail)
            bare.append(write_bare(registrars, SECONDS / 2))
            print(f"{plain(rates[-1])}/s, {plain(per_core[-1])} a CPU second, p99 {tail:.1f} ms", flush=True)
        while metric(registrars, "lamplighter_registrar_registrations") < MILLION:
            count, _, _ = load(registrars, 20, total)
            total += count
        held = metric(registrars, "lamplighter_registrar_registrations")
        table_bytes = metric(registrars, "lamplighter_registrar_memory_bytes")
        resident = int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1])
    finally:
        registrars.close()
    section.add(
        f"One registrar, 64 connections of wrk on the same machine, each request a new installation with one control; "
        f"answered once the embedded Kafka has acknowledged it. {ROUNDS} rounds of {SECONDS} s, median (least–most). "
        "The bare producer is Python's with librdkafka, with as many writes of 200 bytes under way.")
    section.add(table(
        ["", "figure", "must", "goal", "result"],
        [["acknowledged a CPU second", spread(per_core), *TARGET.cells(statistics.median(per_core))],
         ["acknowledged a second", spread(rates), "", "", ""],
         ["p99 of an answer, ms", spread(tails), "", "", ""],
         *([name, spread(values), "", "", ""] for name, values in zip(
             ("a bare `acks=all` producer, acknowledged a CPU second", "the same, a second", "the same, p99 in ms"),
             ([run[1] for run in bare], [run[0] for run in bare], [run[2] for run in bare])))]))
    section.add(
        f"After {held:,} registrations, each of an installation of its own: the table takes {table_bytes / held:.0f} bytes "
        f"each, {table_bytes / held * MILLION / 1e6:.0f} MB a million; the whole process {resident / 1024:.0f} MiB.")
    section.write()


main()
