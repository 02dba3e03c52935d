# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Runs workers, simulators and the demo, each a process, in a folder of their own."""

import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("LAMPLIGHTER_PROGRAMS", ROOT / ".build/debug"))
# Variables with this prefix are configuration.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("LAMPLIGHTER_")}
APP = "com.example.Home"
TEAM = "ABCDE12345"
KEY = "FGHIJ67890"
# Fewer combinations of the same kind, as scripts/check.py --short asks.
IS_SHORT = os.environ.get("LAMPLIGHTER_SHORT", "0") != "0"
# Seconds that anything may take on a machine that is very busy. What is waited for is a fact, so nobody
# waits that long but for one that never comes.
PATIENCE = 120
# Below the ports that Linux gives to those who ask for any, or connect.
PORTS = range(20_000, 32_000)
claims = []


def some(combinations, of=4):
    """All combinations; in the short form one of so many, beginning with the first."""
    return combinations[::of] if IS_SHORT else combinations


def reserve_port():
    """A port on which nothing listens, and which no other process of the tests is given while this one
    lives: whoever claims it holds a name that Linux gives once."""
    for port in random.sample(PORTS, len(PORTS)):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0lamplighter-tests-port-{port}")
            with socket.create_server(("127.0.0.1", port)):
                claims.append(claim)
                return port
        except OSError:
            claim.close()
    raise AssertionError("every port is taken")


def write_whole(path, text):
    """Writes a file that another process reads at any time: it finds all of the text, or what was before."""
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(text)
    draft.replace(path)


class Processes:
    """A folder and the processes that use it; all of them end with it."""

    # Where a test that fails finds the logs of its programs.
    open_folders = set()

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lamplighter-tests-"))
        self.open_folders.add(self.folder)
        self.running = {}

    def close(self):
        """Ends the processes, the youngest first: workers drain while the others still answer."""
        for name in reversed(list(self.running)):
            if self.running[name].poll() is not None:
                print(f"{name} has ended before the test: {self.printed(name + '.log')[-2000:]}")
            self.stop(name)
        self.open_folders.discard(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name, program, *arguments, **environment):
        """Starts one of the programs, or another by its path; what it prints is in the file `name`.log."""
        with open(self.folder / f"{name}.log", "a") as log:
            self.running[name] = subprocess.Popen(
                [PROGRAMS / program, *map(str, arguments)],
                # A fleet runs until its standard input ends.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**ENVIRONMENT, **environment},
                cwd=self.folder,
            )

    def start_apns(self, *more):
        """Starts an APNs simulator, and returns the host and the port of its production side."""
        self.start(
            "apns",
            "lamplighter-lab",
            "simulate",
            "apns",
            "--address-file",
            self.folder / "address",
            "--ca-file",
            self.folder / "ca.pem",
            "--key-out",
            self.folder / "key.p8",
            "--team",
            TEAM,
            "--key-id",
            KEY,
            "--app",
            APP,
            *more,
        )
        self.wait_for("the APNs simulator", lambda: self.printed("address"))
        return re.search(r"production (\S+):(\d+)", self.printed("address")).groups()

    def stop(self, name):
        """Ends a process, and returns its exit code."""
        process = self.running.pop(name)
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdin.close()
        return process.returncode

    def kill(self, name):
        """Ends a process at once."""
        process = self.running.pop(name)
        process.kill()
        process.wait()
        process.stdin.close()

    def printed(self, path):
        """What a file has, as far as its lines are whole: a process may be writing."""
        try:
            text = (self.folder / path).read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return text[: text.rfind("\n") + 1]

    def wait_for(self, what, condition, seconds=PATIENCE):
        """Waits for a condition, and returns what it returns."""
        deadline = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            for name, process in self.running.items():
                if process.poll() is not None:
                    raise AssertionError(f"{name} has ended: {self.printed(name + '.log')[-1000:]}")
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {seconds} s for {what}")
            time.sleep(0.05)

    def port_in(self, path, purpose):
        """The port that a worker's log says it listens on; nothing before that."""
        found = re.findall(rf"listening {purpose}.* port=(\d+)", self.printed(path))
        return int(found[-1]) if found else None

    def has_started(self):
        """Whether there is a planner that answers: a worker listens before it has looked up its topics."""
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.health}/metrics", timeout=PATIENCE).read()
        except urllib.error.HTTPError:
            return False


class Fleet(Processes):
    """A worker, an embedded Kafka, an APNs simulator that takes commands, and traffic."""

    def __init__(self):
        super().__init__()
        folder = self.folder
        _, port = self.start_apns("--control", folder / "control")
        self.wait_for("the simulator's socket", (folder / "control").exists)
        self.start(
            "fleet",
            "lamplighter-lab",
            "fleet",
            "--directory",
            folder / "fleet",
            "--workers",
            1,
            "--apns-port",
            port,
            "--ca-file",
            folder / "ca.pem",
            "--key-file",
            folder / "key.p8",
        )
        log = "fleet/worker-1.log"
        self.health = self.wait_for("the probes", lambda: self.port_in(log, "for probes"))
        self.admin = self.wait_for("the page", lambda: self.port_in(log, "for requests of operators"))
        self.wait_for("the planner", self.has_started)
        bootstrap = re.search(r"bootstrap: (\S+)", self.printed("fleet/lamplighter.yaml"))[1]
        self.start(
            "traffic",
            "lamplighter-lab",
            "simulate",
            "traffic",
            "--bootstrap",
            bootstrap,
            "--events-log",
            folder / "events.ndjson",
            "--installations",
            300,
            "--rate",
            100,
        )

    def tell_apns(self, command):
        """Gives a command to the APNs simulator."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.folder / "control"))
            client.sendall(f"{command}\n".encode())
            answer = client.makefile().readline().strip()
        if answer != "ok":
            raise AssertionError(f"the simulator does not {command}: {answer}")

    @property
    def address(self):
        return f"http://127.0.0.1:{self.admin}/"

    def get(self, path, port=None):
        """Returns the body of an answer of the worker's."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port or self.admin}/{path}", timeout=PATIENCE) as answer:
            return answer.read()
