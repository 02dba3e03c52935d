# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What every benchmark needs: the programs, servers on loopback, and the yardstick."""

import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
APP = "com.example.Home"
PRODUCTS = ("lamplighter", "lamplighter-lab", "lamplighter-bench")
BODY = '{"aps":{"content-changed":true}}'
# Distinct device tokens that h2load pushes to.
YARDSTICK_TOKENS = 100_000
# What the embedded Kafka keeps of a partition, and how full it may get before events are held back.
PARTITION_BYTES = 5 << 20


def fail(message):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {message}")


def number(name, default):
    """A whole number from the environment."""
    text = os.environ.get(name) or str(default)
    if not text.isdigit() or int(text) < 1:
        fail(f"{name}={text} is not a number above 0")
    return int(text)


def build(*products, configuration="release"):
    """Builds programs and returns their folder."""
    environment = dict(os.environ, LAMPLIGHTER_BENCH="1")
    # Of debug builds all have one set of options: with others everything would be built again.
    environment.pop("LAMPLIGHTER_PROGRAMS", None)
    commands = [["scripts/build-debug.sh", *products]] if configuration == "debug" else [
        ["scripts/swift-build.sh", "--disable-index-store", "-c", configuration, "--product", product]
        for product in products]
    for command in commands:
        print("+", *command, flush=True)
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
    shown = subprocess.run(
        ["swift", "build", "-c", configuration, "--show-bin-path"], cwd=ROOT, env=environment,
        check=True, capture_output=True, text=True)
    return pathlib.Path(shown.stdout.strip())


class Rig:
    """A folder and the processes of one benchmark; all of them end with it.

    `simulators` is the folder of the program that has the simulators, if that is not to be built too:
    where nothing but instructions is counted, its speed does not matter.
    """

    def __init__(self, simulators=None, configuration="release"):
        self.simulators = simulators
        self.configuration = configuration

    def __enter__(self):
        products = ["lamplighter-bench"] if self.simulators else PRODUCTS
        self.programs = build(*products, configuration=self.configuration)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lamplighter-bench-"))
        self.processes = []
        # Whether the folder stays, as evidence.
        self.keeps = False
        # SIGTERM leaves by the same way as an error.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        return self

    def __exit__(self, *_):
        self.end(self.processes)
        if self.keeps:
            print(f"kept {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def end(self, processes):
        """Ends these, the youngest first: workers drain while the others still answer."""
        for process in list(reversed(processes)):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.processes = [other for other in self.processes if other is not process]

    def start(self, name, program, *arguments, stdin=subprocess.DEVNULL, environment=None):
        """Starts one of the programs; what it says is in the file `name`.log.

        `environment` is added to that of this process.
        """
        with open(self.folder / f"{name}.log", "w") as log:
            folder = self.programs
            if self.simulators and program == "lamplighter-lab":
                folder = self.simulators
            process = subprocess.Popen(
                [folder / program, *map(str, arguments)], stdout=log, stderr=log,
                stdin=stdin, env={**os.environ, **(environment or {})})
        process.name = name
        self.processes.append(process)
        return process

    def begin(self, *arguments):
        """Starts a subcommand of `lamplighter-bench` beside what is measured; `figures` waits for it."""
        process = subprocess.Popen(
            [self.programs / "lamplighter-bench", *map(str, arguments)], stdout=subprocess.PIPE,
            text=True)
        process.name = f"lamplighter-bench {arguments[0]}"
        process.ends_by_itself = True
        self.processes.append(process)
        return process

    def figures(self, process):
        """The figures of a process that `begin` has started, once it has ended."""
        out, _ = process.communicate()
        self.processes = [other for other in self.processes if other is not process]
        if process.returncode != 0:
            fail(f"{process.name} has failed")
        return json.loads(out)

    def wait_for(self, what, seconds, condition):
        deadline = time.monotonic() + seconds
        while not condition():
            for process in self.processes:
                if process.poll() is None:
                    continue
                if not getattr(process, "ends_by_itself", False):
                    fail(f"{process.name} has ended: {self.said(process.name)[-500:]}")
                if process.returncode != 0:
                    fail(f"{process.name} has failed")
            if time.monotonic() > deadline:
                fail(f"waited {seconds} s in vain for {what}")
            time.sleep(0.02)

    def said(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def bench(self, *arguments, prefix=()):
        """Runs a subcommand of `lamplighter-bench` and returns its figures."""
        run = subprocess.run(
            [*prefix, self.programs / "lamplighter-bench", *map(str, arguments)],
            stdout=subprocess.PIPE, text=True)
        if run.returncode != 0:
            fail(f"lamplighter-bench {arguments[0]} has failed")
        return json.loads(run.stdout)

    def simulator(self, name="apns", delay=None, keeps_log=False, threads=1, apps=()):
        return Simulator(self, name, delay, keeps_log, threads, apps)


class Simulator:
    """An APNs simulator in a process of its own."""

    def __init__(self, rig, name, delay, keeps_log, threads, apps):
        self.rig = rig
        folder = rig.folder
        self.ca, self.key = folder / f"{name}-ca.pem", folder / f"{name}.p8"
        self.log, self.control = folder / f"{name}.ndjson", folder / f"{name}.control"
        address = folder / f"{name}.address"
        options = ["--threads", threads]
        options += ["--delay", delay] if delay else []
        options += ["--log", self.log] if keeps_log else []
        self.process = rig.start(
            name, "lamplighter-lab", "simulate", "apns", "--address-file", address, "--ca-file", self.ca,
            "--key-out", self.key, "--control", self.control,
            *(part for app in (APP, *apps) for part in ("--app", app)), *options)
        rig.wait_for("the APNs simulator", 30, lambda: address.exists() and address.read_text())
        self.port = int(re.search(r"production \S+:(\d+)", address.read_text())[1])
        rig.wait_for("its control socket", 30, self.control.exists)

    def accepted(self):
        return json.loads(self._answer("status"))["accepted"]

    def command(self, text):
        """A command of `lamplighter-lab simulate apns --help`, such as `delay 50ms`."""
        answer = self._answer(text).strip()
        if answer != "ok":
            fail(f"the simulator does not {text}: {answer}")

    def _answer(self, line):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.control))
            client.sendall(f"{line}\n".encode())
            return client.makefile().readline()

    def dispatch_arguments(self):
        return ["--port", self.port, "--ca-file", self.ca, "--key-file", self.key]


class Yardstick:
    """h2load on one connection with 1,000 streams, the APNs headers and the worker's body."""

    # It opens 100 streams before it has read the SETTINGS, which allow one.
    REFUSED_MAX = 99

    def __init__(self, rig, simulator, pushes):
        self.pushes = pushes
        tokens = random.Random(1)
        paths = rig.folder / "paths"
        with open(paths, "w") as file:
            for _ in range(YARDSTICK_TOKENS):
                token = f"{tokens.getrandbits(256):064x}"
                file.write(f"https://127.0.0.1:{simulator.port}/3/device/{token}\n")
        body = rig.folder / "body"
        body.write_text(BODY)
        # The text is the same each time; the simulator accepts a provider token for an hour.
        authorization = subprocess.run(
            [rig.programs / "lamplighter-bench", "provider-token", "--key-file", simulator.key],
            check=True, capture_output=True, text=True).stdout.strip()
        headers = [
            f"authorization: {authorization}", f"apns-topic: {APP}.push-type.controls",
            "apns-push-type: controls", "apns-priority: 10", "apns-expiration: 0"]
        self.arguments = ["-c", "1", "-t", "1", "-i", str(paths), "-d", str(body)]
        for header in headers:
            self.arguments += ["-H", header]

    def run(self):
        """CPU per request in microseconds. Of the whole process but its start: h2load reads its
        100,000 paths and connects in as much as 30,000 requests take, and what is measured beside
        it is warm too."""
        seconds, accepted = self._measure(self.pushes)
        return (seconds - self._measure(1)[0]) * 1e6 / (accepted - 1)

    def _measure(self, count):
        """CPU seconds, and how many requests were accepted."""
        command = ["h2load", *self.arguments, "-m", str(min(count, 1000)), "-n", str(count)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run(command, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        accepted = re.search(r"^status codes: (\d+) 2xx", run.stdout, re.M)
        accepted = int(accepted[1]) if accepted else 0
        if accepted < max(1, count - self.REFUSED_MAX):
            fail(f"h2load was refused: {run.stdout[-600:]}{run.stderr[-300:]}")
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, accepted


def cpu_seconds(process):
    """User and system time of all threads of a process, in steps of 10 ms."""
    return _stat(f"/proc/{process.pid}/stat")[1]


def thread_seconds(process):
    """(name, seconds) of each thread of a process, by its number."""
    threads = {}
    for thread in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        try:
            threads[int(thread.name)] = _stat(thread / "stat")
        except (FileNotFoundError, ProcessLookupError):
            pass  # It has ended meanwhile.
    return threads


def _stat(path):
    """The name in parentheses, and user and system time."""
    name, _, rest = pathlib.Path(path).read_text().partition("(")[2].rpartition(")")
    fields = rest.split()
    return name, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle_seconds():
    """Time that the machine's cores had nothing to do, all added up."""
    fields = pathlib.Path("/proc/stat").read_text().split()
    # After `cpu`: user, nice, system, idle, waiting for disks.
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def memory_bytes(process, line):
    """`VmRSS` or `VmHWM` of a process."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(rf"^{line}:\s+(\d+) kB", status, re.M)[1]) * 1024
