#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What a flood of requests and readers that are stuck cost the pushes; see README.md."""

import os
import re
import socket
import statistics
import subprocess
import sys
import threading

from fleet import BROKER, Fleet
from results import Section, plain, spread, table
from rig import Rig, fail, number

ROUNDS = number("BENCH_ROUNDS", 12)
SECONDS = number("LATENCY_SECONDS", 4)
RATE = 10_000
WARM_UP = 1
# How much of the pushes' p99 may be the listeners'.
RATIO_MAX = 1.10
# Clients of each listener.
FLOODING = 8
STUCK = 4
PATHS = {
    "health": ["/metrics", "/livez", "/readyz"],
    # A token that there is not: the question that goes through the whole index.
    "admin": ["/status", "/log-level", "/", "/explain?tokenID=0123456789abcdef"]}
LISTENING = {
    "health": r"listening for probes and for requests of metrics .*port=(\d+)",
    "admin": r"listening for requests of operators .*port=(\d+)"}


# MARK: The flood, a process of its own


def request(path):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def flood(port, paths, answered):
    """Asks again as soon as it is answered, on one connection after another."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 10) as client:
                stream = client.makefile("rb")
                for count in range(1 << 30):
                    client.sendall(request(paths[count % len(paths)]))
                    length = 0
                    while (line := stream.readline()) not in (b"\r\n", b""):
                        if line.lower().startswith(b"content-length:"):
                            length = int(line.split(b":")[1])
                    if line == b"":
                        break
                    stream.read(length)
                    answered.append(1)
        except OSError:
            pass


def stay_stuck(port, path):
    """Asks for more than its buffers hold, and reads nothing."""
    while True:
        try:
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.connect(("127.0.0.1", port))
                while True:
                    client.sendall(request(path))
        except OSError:
            pass


def be_flood(ports):
    """Floods until its standard input ends, and prints how many answers came."""
    # On a machine that is shared with the worker, the clients' own work must not count. With the
    # lowest priority alone, a thread would keep its core for a time slice of milliseconds.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    answered = []
    for name, port in zip(PATHS, ports):
        jobs = [(flood, (port, PATHS[name], answered))] * FLOODING
        jobs += [(stay_stuck, (port, PATHS[name][0]))] * STUCK
        for job, arguments in jobs:
            threading.Thread(target=job, args=arguments, daemon=True).start()
    sys.stdin.read()
    print(len(answered), flush=True)
    os._exit(0)


# MARK: The measurement


def ports(fleet):
    log = fleet.workers[0].log.read_text(errors="replace")
    found = [re.search(LISTENING[name], log) for name in PATHS]
    if not all(found):
        fail(f"the worker does not listen: {log[-500:]}")
    return [match[1] for match in found]


def main():
    with Rig() as rig:
        section = Section(
            "listeners", "Latency while the listeners are flooded",
            f"make bench-listeners BENCH_ROUNDS={ROUNDS} LATENCY_SECONDS={SECONDS}")
        simulator = rig.simulator("apns", keeps_log=True)
        tokens = RATE * (SECONDS + WARM_UP)
        fleet = Fleet(
            rig, simulator, tokens, properties={"fetch.wait.max.ms": 1}, partitions=4)
        fleet.run(10, tokens)
        answers = []

        def latency(is_flooded):
            client = is_flooded and subprocess.Popen(
                [sys.executable, __file__, "--flood", *ports(fleet)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)
            figures = rig.bench(
                "latency", "--bootstrap", fleet.bootstrap, "--topic", fleet.topic("events"),
                "--group", fleet.prefix, "--tokens", tokens, "--rate", RATE, "--fan-out", 10,
                "--seconds", SECONDS, "--warm-up", WARM_UP, "--answers", simulator.log)
            simulator.log.open("w").close()
            if client:
                answers.append(int(client.communicate()[0]))
            if figures["missing"]:
                fail(f"{figures['missing']} pushes are missing")
            return figures["milliseconds"]

        rounds = {False: [], True: []}
        for turn in range(ROUNDS):
            # Each comes first as often: what drifts on this machine favours neither.
            for is_flooded in ([False, True] if turn % 2 else [True, False]):
                rounds[is_flooded].append(latency(is_flooded))
            print(*(f"{rounds[each][-1]['p99']:.2f} ms" for each in rounds), answers[-1],
                  flush=True)
        fleet.stop()
        if min(answers) == 0:
            fail("a flood got no answer")

        p99 = {each: [figures["p99"] for figures in rounds[each]] for each in rounds}
        ratios = [own / alone for own, alone in zip(p99[True], p99[False])]
        # What two rounds differ by of which nothing is asked.
        noise = [later / earlier for earlier, later in zip(p99[False], p99[False][1:])]
        ratio = statistics.median(ratios)
        result = "kept" if ratio <= RATIO_MAX else "missed"
        kafka = "a real broker" if BROKER else "the embedded Kafka"
        section.add(
            f"{RATE:,} pushes/s at fan-out 10, {SECONDS} s a run, {ROUNDS} pairs of runs in turn, "
            f"with {kafka}. In one run of each pair {FLOODING} clients of each listener ask for "
            f"{', '.join(path for paths in PATHS.values() for path in paths)} as fast as they are "
            f"answered ({spread(answers)} answers a run), and {STUCK} more ask and never read. The "
            "clients run on the same machine, at the lowest priority.")
        section.add(table(
            ["", "p50 ms", "p99 ms", "p99.9 ms"],
            [[name, *(spread([figures[key] for figures in rounds[each]])
                      for key in ("p50", "p99", "p99.9"))]
             for name, each in (("alone", False), ("flooded", True))]))
        section.add(
            f"The p99 is × {spread(ratios)} of that of the same pair (at most {RATIO_MAX}: "
            f"{result}). From one run alone to the next it is × {spread(noise)}.")
        section.write()
        print(f"p99 × {plain(ratio)}: {result}")
        sys.exit(result != "kept")


if sys.argv[1:2] == ["--flood"]:
    be_flood([int(port) for port in sys.argv[2:]])
main()
