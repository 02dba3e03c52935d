# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Serves the live page with made-up statuses: a worker, or the demo's fleet of two."""

import datetime
import http.server
import json
import math
import pathlib
import random
import re
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSETS = ROOT / "Sources/App/LivePage/Assets"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


def policy():
    """Returns the content security policy that the program sends with the page."""
    source = (ROOT / "Sources/App/LivePage/LivePage.swift").read_text()
    return " ".join(re.findall(r'"((?:default|script|style|connect|img)-src [^"]*?|frame-[^"]*?) ?"', source))


def date(seconds):
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def healthy(turn=0, workers=1):
    """Makes the status of a worker that is well, a little different in each turn."""
    noise = random.Random(turn)
    wave = 1 + 0.25 * math.sin(turn / 17) + 0.12 * math.sin(turn / 5) + noise.uniform(-0.05, 0.05)
    accepted = round(4200 * wave / workers)
    now = time.time()
    return {
        "v": 1,
        "at": date(now),
        "worker": {
            "id": "lamplighter-0",
            "group": "lamplighter",
            "version": "0.3.0",
            "commit": "6874cd6f52a1",
            "startedAt": date(now - 3 * 3600 - 720),
            "mode": "live",
            "residentBytes": 412 << 20,
        },
        "phase": "running",
        "summary": "All is well: pushes are accepted within 38 ms, and no partition is behind.",
        "problems": [],
        "index": {
            "share": 1,
            "recordsRead": 1_204_332 + turn,
            "secondsLeft": None,
            "tokens": 998_213,
            "subjects": 402_118,
            "subscriptions": 1_996_304,
            "registrations": 499_870,
            "bytes": 187 << 20,
            "topics": [
                {"topic": "lamplighter.registrations", "partitions": 12, "unread": 0, "ageSeconds": 0.4},
                {"topic": "lamplighter.suppressions", "partitions": 12, "unread": 0, "ageSeconds": 0.4},
            ],
        },
        "partitions": [
            {"topic": topic, "partition": partition, "lag": noise.randrange(most) if most else None}
            for topic, most in (
                ("lamplighter.events", 40),
                ("orders.changed", 6),
                ("lamplighter.deferred", 0),
            )
            for partition in range(0, 12, 1 + workers)
        ],
        "unavailablePartitions": 0,
        "rates": {"eventsPerSecond": round(accepted / 3.4), "acceptedPerSecond": accepted, "overSeconds": 5},
        "totals": {"eventsRead": 11_822_913 + turn * 1200},
        "latency": {
            "eventToAccepted": [
                {
                    "type": "controls",
                    "count": 30_118_233,
                    "p50Seconds": 0.0068 * wave,
                    "p99Seconds": 0.031 * wave**3,
                },
                {"type": "widgets", "count": 9_118_233, "p50Seconds": 0.0071, "p99Seconds": 0.034},
                {"type": "alert", "count": 402_118, "p50Seconds": 0.0064, "p99Seconds": 0.029},
            ],
            "roundTrip": {"count": 39_822_118, "p50Seconds": 0.0049, "p99Seconds": 0.022},
        },
        "waiting": {
            "queued": noise.randrange(90),
            "inFlight": 24 + noise.randrange(30),
            "resting": 3,
            "deferred": 1182,
            "held": 61 + noise.randrange(20),
            "unacknowledged": noise.randrange(5),
            "payloadBytes": 183_400,
            "oldestWaitingSeconds": 0.012,
            "oldestUncommittedSeconds": 2.1,
        },
        "pools": [
            {
                "credential": "home",
                "environment": environment,
                "state": "open",
                "connections": connections,
                "streams": streams,
                "streamsMax": connections * 1000,
                "providerTokenAgeSeconds": 1322 + turn,
                "silentSeconds": None,
            }
            for environment, connections, streams in (
                ("production", 4, 24 + noise.randrange(30)),
                ("development", 1, 0),
            )
        ],
        "breakers": [],
        "topics": [],
        "unmatched": [
            {
                "topic": "lamplighter.events",
                "count": 1204,
                "sample": [
                    {"subject": "dor-1", "at": date(now - 192)},
                    {"subject": "lamp-99812", "at": date(now - 41)},
                    {"subject": "dor-1", "at": date(now - 3)},
                ],
            }
        ],
        "setAside": [],
        "pushes": [
            {"app": "com.example.Home", "type": kind, "outcome": outcome, "reason": reason, "count": count}
            for kind, outcome, reason, count in (
                ("controls", "accepted", "", 30_118_233 + turn * accepted * 3 // 4),
                ("widgets", "accepted", "", 9_118_233 + turn * accepted // 4),
                ("alert", "accepted", "", 402_118),
                ("controls", "unregistered", "Unregistered", 3118),
                ("widgets", "expired", "", 412),
                ("alert", "rejected", "PayloadTooLarge", 7),
            )
        ],
    }


def refused_key(turn=0, workers=1):
    """Makes a status in which APNs refuses a credential: its circuit breaker is open."""
    status = healthy(turn, workers)
    remedy = "check the credential's key, key ID, team and environments"
    status["summary"] = (
        "APNs refuses the credential home (InvalidProviderToken), and 18,204 pushes wait: " + remedy + "."
    )
    status["problems"] = [
        {
            "severity": "error",
            "summary": "APNs answers InvalidProviderToken to home in production",
            "remedy": remedy,
        },
        {
            "severity": "warning",
            "summary": "1,204 events named subjects that nobody shows, such as dor-1",
            "remedy": "check how the producer of lamplighter.events spells its subjects",
        },
    ]
    status["breakers"] = [
        {
            "name": "home in production",
            "cause": "APNs answers InvalidProviderToken",
            "nextProbeSeconds": 12,
            "remedy": remedy,
        }
    ]
    status["waiting"] |= {"queued": 18_204, "inFlight": 0, "oldestWaitingSeconds": 41}
    status["rates"]["acceptedPerSecond"] = 0
    status["pools"][0]["streams"] = 0
    return status


def stalled(turn=0, workers=1):
    """Makes a status in which pushes wait and nothing answers."""
    status = healthy(turn, workers)
    status["summary"] = "APNs has answered nothing for 4 s, and 3,118 pushes wait."
    status["problems"] = [
        {
            "severity": "error",
            "summary": "home in production is stalled",
            "remedy": "see whether this host reaches APNs: lamplighter check",
        }
    ]
    status["waiting"] |= {"queued": 3118, "inFlight": 4000, "oldestWaitingSeconds": 4.2}
    status["rates"]["acceptedPerSecond"] = 0
    status["pools"][0] |= {"streams": 4000, "streamsMax": 4000, "silentSeconds": 4.1, "state": "stalled"}
    return status


def replaying(turn=0, workers=1):
    """Makes the status of a worker that reads its index."""
    status = healthy(turn, workers)
    status |= {
        "phase": "replaying",
        "summary": "Reads registrations and suppressions: 62 %, 8 s left.",
        "partitions": [],
    }
    status["index"] |= {"share": 0.62, "secondsLeft": 8.2}
    return status


class MockWorker:
    """A server on a port of loopback that the system chooses."""

    def __init__(self, status=healthy, token=None, workers=1, devices=0):
        self.status = status
        self.token = token
        self.workers = workers
        self.accepted = [None] * devices
        self.turn = 0
        mock = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                mock.answer(self)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request):
        path = request.path
        asset = ASSETS / ("page.html" if path == "/" else path[1:])
        if asset.parent == ASSETS and asset.suffix in TYPES and asset.is_file():
            return self.send(request, 200, TYPES[asset.suffix], asset.read_bytes())
        if self.token and request.headers["Authorization"] != f"Bearer {self.token}":
            return self.send(request, 401, "text/plain", b"a bearer token is needed\n")
        if path == "/fleet":
            return self.fleet(request)
        if path == "/devices":
            return self.json(request, self.devices())
        if path.endswith("status"):
            self.turn += 1
            status = self.status(self.turn, self.workers)
            return (
                self.json(request, status)
                if status is not None
                else self.send(request, 503, "text/plain", b"the planner does not answer\n")
            )
        return self.send(request, 404, "text/plain", b"nothing is served here\n")

    def fleet(self, request):
        if self.workers == 1:
            return self.json(request, {"v": 1, "workers": []})
        names = [{"name": f"worker {n}", "status": f"workers/{n}/status"} for n in range(1, self.workers + 1)]
        return self.json(request, {"workers": names, "devices": "devices"})

    def devices(self):
        now = time.time() * 1000
        for index in random.sample(range(len(self.accepted)), len(self.accepted) // 5):
            self.accepted[index] = now - random.uniform(0, 1000)
        return {"v": 1, "at": now, "accepted": self.accepted, "total": 3000}

    def json(self, request, value):
        self.send(request, 200, "application/json", json.dumps(value).encode())

    @staticmethod
    def send(request, status, kind, body):
        request.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Security-Policy", policy()),
        ):
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)


if __name__ == "__main__":
    server = MockWorker(workers=2, devices=400)
    print(server.address, flush=True)
    threading.Event().wait()
