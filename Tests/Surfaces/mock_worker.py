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
# When the planner of a worker with the status `old` has answered last.
OLD_AT = "2026-11-21T06:12:00.123Z"


def headers():
    """Returns the headers that the program sends with each answer, and those of the page's parts."""
    responder = (ROOT / "Sources/Drivers/HTTPListener/ListenerResponder.swift").read_text()
    listed = re.search(r"var headers: \S+ = \[(.*?)\n +\]", responder, re.DOTALL)[1]
    common = dict(re.findall(r'"([^"]+)": "([^"\\]+)"', listed))
    page = (ROOT / "Sources/App/LivePage/LivePage.swift").read_text()
    declared = re.search(r"let contentSecurityPolicy =\n(.*?)\n\n", page, re.DOTALL)[1]
    return common, common | {"Content-Security-Policy": "".join(re.findall('"([^"]*)"', declared))}


def date(seconds):
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def made_up(name, workers=1):
    """Returns a status of statuses.json, in which each but `healthy` has only the members that differ."""
    statuses = json.loads((ROOT / "Tests/Surfaces/statuses.json").read_text())
    status = statuses["healthy"] | statuses[name]
    now = time.time()
    status["at"] = date(now)
    status["worker"]["startedAt"] = date(now - 3 * 3600 - 720)
    status["partitions"] = status["partitions"][::workers]
    for sighting, age in zip(status["unmatched"][0]["sample"], (192, 41, 3)):
        sighting["at"] = date(now - age)
    return status


def wave(turn):
    """How much there is to do in a turn, compared with other turns: about 1."""
    return 1 + 0.25 * math.sin(turn / 17) + 0.12 * math.sin(turn / 5) + random.Random(turn).uniform(-0.05, 0.05)


def healthy(turn=0, workers=1):
    """Makes the status of a worker that is well, a little different in each turn."""
    status = made_up("healthy", workers)
    noise = random.Random(turn)
    accepted = round(4200 * wave(turn) / workers)
    accepted_before = round(sum(map(wave, range(turn))) * 4200 / workers)
    status["rates"] |= {"eventsPerSecond": round(accepted / 3.4), "acceptedPerSecond": accepted}
    status["index"]["recordsRead"] += turn
    controls = status["latency"]["eventToAccepted"][0]
    controls |= {"p50Seconds": 0.0068 * wave(turn), "p99Seconds": 0.031 * wave(turn) ** 3}
    for partition in status["partitions"]:
        if partition["lag"] is not None:
            partition["lag"] = noise.randrange(40 if partition["topic"] == "lamplighter.events" else 6)
    status["waiting"] |= {
        "queued": noise.randrange(90),
        "inFlight": 24 + noise.randrange(30),
        "held": 61 + noise.randrange(20),
        "unacknowledged": noise.randrange(5),
    }
    status["pools"][0]["streams"] = status["waiting"]["inFlight"]
    for pool in status["pools"]:
        pool["providerTokenAgeSeconds"] += turn
    status["pushes"][0]["count"] += accepted_before * 3 // 4
    status["pushes"][1]["count"] += accepted_before // 4
    return status


def refused_key(turn=0, workers=1):
    """Makes a status in which APNs refuses a credential: its circuit breaker is open."""
    return made_up("refusedKey", workers)


def stalled(turn=0, workers=1):
    """Makes a status in which pushes wait and nothing answers."""
    return made_up("stalled", workers)


def restricted(turn=0, workers=1):
    """Makes the status of a worker of whose pushes some are paused, some limited and some dropped."""
    return made_up("restricted", workers)


def replaying(turn=0, workers=1):
    """Makes the status of a worker that reads its index."""
    return made_up("replaying", workers)


def old(turn=0, workers=1):
    """Makes the status of a worker whose planner is stuck, which was as `OLD_AT` says."""
    return made_up("old", workers) | {"at": OLD_AT}


class MockWorker:
    """A server on a port of loopback that the system chooses."""

    def __init__(self, status=healthy, token=None, workers=1, devices=0):
        self.status = status
        self.token = token
        self.workers = workers
        self.accepted = [None] * devices
        self.turn = 0
        self.headers, self.page_headers = headers()
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
            return self.send(request, 200, TYPES[asset.suffix], asset.read_bytes(), self.page_headers)
        if self.token and request.headers["Authorization"] != f"Bearer {self.token}":
            return self.send(request, 401, "text/plain", b"a bearer token is needed\n")
        if path == "/fleet":
            return self.fleet(request)
        if path == "/devices":
            return self.json(request, self.devices())
        if path.endswith("status"):
            self.turn += 1
            status = self.status(self.turn, self.workers)
            if status is None:
                # So the demo answers for a worker that is gone.
                return self.send(request, 502, "text/plain", b"nothing listens\n")
            return self.json(request, status, 503 if status.get("at") == OLD_AT else 200)
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

    def json(self, request, value, status=200):
        self.send(request, status, "application/json", json.dumps(value).encode())

    def send(self, request, status, kind, body, headers=None):
        request.send_response(status)
        length = str(len(body))
        for name, value in {"Content-Type": kind, "Content-Length": length, **(headers or self.headers)}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)


if __name__ == "__main__":
    server = MockWorker(workers=2, devices=400)
    print(server.address, flush=True)
    threading.Event().wait()
