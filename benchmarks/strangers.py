#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What thousands of hostile connections cost a registrar, and its callers; see README.md."""

import asyncio
import http.client
import json
import os
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Tests/Registrar"))
os.environ["LAMPLIGHTER_PROGRAMS"] = str(HERE.parent / ".build/release")

from registrars import INSTALLATION, Registrars  # noqa: E402
from results import Section, plain, spread, table  # noqa: E402
from rig import fail, number  # noqa: E402

ROUNDS = number("BENCH_ROUNDS", 3)
SECONDS = number("LATENCY_SECONDS", 10)
CONNECTIONS = 4_000
# From so many addresses, since one has a quarter of the strangers' places at most.
ADDRESSES = 100
# Requests a second of the caller who is measured, and on how many of them it connects anew.
RATE, FRESH = 100, 10
RSS_MAX, RATIO_MAX = 150, 2.0
PATH = f"{INSTALLATION}/stranger-1/controls"
# What a connection sends at once, and then again each second; and whether it reads what comes.
KINDS = {
    "say nothing": (b"", b"", True),
    "send a head for ever": (f"PUT {PATH} HTTP/1.1\r\nHost: x\r\nX-A: ".encode(), b"a", True),
    "send a body, with no key": (
        f"PUT {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 262144\r\n\r\n".encode() + bytes(65536),
        bytes(1024), True),
    "send a body, with a wrong key": (
        f"PUT {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer tests.{'A' * 43}\r\n"
        "Content-Length: 262144\r\n\r\n".encode() + bytes(65536), bytes(1024), True),
    "ask and do not read": (
        b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 20,
        b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", False),
    "ask again and again": (
        b"GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n", True),
    "stop in the TLS handshake": (b"\x16\x03\x01\x02\x00\x01", b"", True),
}
OVER_TLS = "stop in the TLS handshake"


# MARK: The hostile, a process of its own


async def be_hostile(number, port, kind, counts):
    """Takes up its connection again a second after it was closed."""
    first, later, reads = KINDS[kind]
    loop = asyncio.get_running_loop()
    while True:
        try:
            with socket.socket() as client:
                client.setblocking(False)
                if not reads:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.bind((f"127.77.0.{1 + number % ADDRESSES}", 0))
                await loop.sock_connect(client, ("127.0.0.1", port))
                counts["made"] += 1
                counts["open"] += 1
                try:
                    await asyncio.wait_for(loop.sock_sendall(client, first), 30)
                    while True:
                        try:
                            if not reads:
                                await asyncio.sleep(1)
                            elif await asyncio.wait_for(loop.sock_recv(client, 65536), 1) == b"":
                                break
                            else:
                                await asyncio.sleep(1)
                        except TimeoutError:
                            pass
                        await asyncio.wait_for(loop.sock_sendall(client, later), 30)
                finally:
                    counts["open"] -= 1
        except OSError:
            pass
        await asyncio.sleep(1)


async def hostile(port, kind):
    counts = {"made": 0, "open": 0}
    tasks = [asyncio.create_task(be_hostile(number, port, kind, counts)) for number in range(CONNECTIONS)]
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print("begun", flush=True)
    while not ended.is_set():
        await asyncio.sleep(0.2)
    print(json.dumps(counts), flush=True)
    os._exit(len(tasks) != CONNECTIONS)


def main_hostile(port, kind):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    # On a machine that is shared with the registrar, the strangers' own work must not count.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    asyncio.run(hostile(port, kind))


# MARK: The measurement


class Caller:
    """Registers at a fixed rate, and notes how long after its due time each was answered."""

    def __init__(self, port, key):
        self.port = port
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        # Above those of the callers before.
        self.sequence = int(time.time() * 1000)
        self.connection = None

    def register(self, is_fresh):
        self.sequence += 1
        body = json.dumps({"sequence": self.sequence, "targets": [
            {"token": f"{self.sequence:064x}", "shows": [{"kind": "door", "subjects": ["door-1"]}]}]})
        connection = self.connection
        if is_fresh or connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            self.connection = self.connection or connection
        connection.request("PUT", f"{INSTALLATION}/honest-{self.sequence % 500}/controls/G", body, self.headers)
        answer = connection.getresponse()
        answer.read()
        if connection is not self.connection:
            connection.close()
        if answer.status not in (200, 201):
            fail(f"a registration was answered {answer.status}")

    def run(self, seconds):
        begun, times = time.monotonic(), []
        for count in range(int(RATE * seconds)):
            due = begun + count / RATE
            time.sleep(max(0, due - time.monotonic()))
            self.register(count % FRESH == 0)
            times.append(time.monotonic() - due)
        return times


def resident(pid):
    return next(int(line.split()[1]) / 1024 for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                if line.startswith("VmRSS"))


class Peak(threading.Thread):
    """The most memory that a process has meanwhile."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.mebibytes, self.ended = pid, 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.1):
            self.mebibytes = max(self.mebibytes, resident(self.pid))


def p99(times):
    return statistics.quantiles(times, n=100)[98] * 1000


def measure(registrars, kind, tls_port):
    """The p99 of a caller alone and beside the hostile, in ms, and what the registrar took."""
    port, pid = registrars.ports["one"], registrars.running["one"].pid
    Caller(port, registrars.key).run(1)
    alone = p99(Caller(port, registrars.key).run(SECONDS))
    if kind == OVER_TLS:
        pid = registrars.running["tls"].pid
    peak = Peak(pid)
    peak.start()
    client = subprocess.Popen(
        [sys.executable, __file__, "--hostile", str(tls_port if kind == OVER_TLS else port), kind],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    client.stdout.readline()
    time.sleep(5)
    beside = p99(Caller(port, registrars.key).run(SECONDS))
    counts = json.loads(client.communicate()[0].splitlines()[-1])
    peak.ended.set()
    return alone, beside, peak.mebibytes, counts


def start_tls(registrars):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "certificate.pem", "-subj", "/CN=localhost"],
        check=True, capture_output=True, cwd=registrars.folder)
    registrars.start_registrar("tls", group="tls", tls={
        name: str(registrars.folder / file)
        for name, file in (("certificateFile", "certificate.pem"), ("keyFile", "key.pem"))})


def main():
    for product in ("lamplighter", "lamplighter-lab"):
        subprocess.run(["swift", "build", "-c", "release", "--product", product], check=True)
    section = Section(
        "strangers", "A registrar among strangers",
        f"make bench-strangers BENCH_ROUNDS={ROUNDS} LATENCY_SECONDS={SECONDS}")
    rows, is_kept = [], True
    registrars = Registrars()
    try:
        registrars.start_registrar("one")
        start_tls(registrars)
        registrars.wait_until_ready("one", "tls")
        for kind in KINDS:
            rounds = [measure(registrars, kind, registrars.ports["tls"]) for _ in range(ROUNDS)]
            ratio = statistics.median(beside / alone for alone, beside, _, _ in rounds)
            memory = max(peak for _, _, peak, _ in rounds)
            is_kept = is_kept and ratio <= RATIO_MAX and memory <= RSS_MAX
            rows.append([
                kind, spread([alone for alone, _, _, _ in rounds]), spread([beside for _, beside, _, _ in rounds]),
                f"{ratio:.2f}", f"{memory:.0f} MiB", spread([counts["made"] for *_, counts in rounds])])
            print(*rows[-1], flush=True)
    finally:
        registrars.close()
    section.add(
        f"One registrar, a caller that registers {RATE} times a second, one in {FRESH} on a connection of its own, and "
        f"{CONNECTIONS:,} connections from {ADDRESSES} addresses that do the same thing together and connect anew a "
        f"second after they were closed; their process has the lowest priority. {ROUNDS} rounds of {SECONDS} s alone and "
        f"{SECONDS} s beside them; p99 from the time at which a request is due, median (least–most). At most × "
        f"{RATIO_MAX:g} and {RSS_MAX} MiB: {'kept' if is_kept else 'missed'}.")
    section.add(table(
        ["the strangers", "p99 alone, ms", "p99 beside them, ms", "×", "most memory", "connections made"], rows))
    section.write()
    sys.exit(not is_kept)


if sys.argv[1:2] == ["--hostile"]:
    main_hostile(int(sys.argv[2]), sys.argv[3])
main()
