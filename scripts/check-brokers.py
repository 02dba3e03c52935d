#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Runs the tests of whole fleets on a broker that is neither Apache's nor librdkafka's own, tansu.

It and a newer librdkafka than Debian's are fetched from PyPI: before 2.2 the library cannot read tansu's answer
to the question for its versions. What cannot run there is left out, each for the reason below."""

import argparse
import contextlib
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time

from command_line import ROOT, announce, fail, start
from environments import PROGRAMS_MACHINE, unpack_librdkafka, unpack_tansu

# Suites and tests, by their names, for each reason.
LEFT_OUT = {
    "it stops Kafka, or has it answer wrongly": (
        "a Kafka that is away is told",
        "a replay that is held is told, and the startup probe waits for its end",
        "check waits for a topic that is missing, and says so once",
        "topics create says what the embedded Kafka has, and how to give it the rest",
        "The offset of an event that causes a suppression",
    ),
    "tansu 0.6.0 says that a log ends behind the first record of its last batch, not behind the last": (
        "A snapshot of the index on disk",
        "A backlog of APNs",
        "a stop while a team's key is refused ends soon and repeats no other's pushes",
    ),
    "tansu 0.6.0 takes the metadata of a committed offset and answers without it, so that a next owner pushes again "
    "what has ended within index.registrationGrace": (
        "an orderly stop exits 0 and leaves nothing to send again",
        "a stop while a team's key is refused ends soon and repeats no other's pushes",
    ),
    "tansu does not answer kcat's question for an offset by time": (
        "an aborted transaction is never pushed",
    ),
}
TESTS = ROOT / ".build/debug/lamplighterPackageTests.xctest"
SECONDS_MAX = 30


@contextlib.contextmanager
def tansu(program):
    """Runs the broker, which keeps everything in memory, on loopback; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    url = f"tcp://{address}"
    command = [str(program), "broker", "--listener-url", url, "--advertised-listener-url", url,
               "--storage-engine", "memory://tansu/"]
    announce(*command)
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_for(address, process)
            yield address
            if process.poll() is not None:
                fail(f"tansu has ended with {process.returncode}:\n{last_lines(log)}")
        finally:
            process.kill()
            process.wait()


def wait_for(address, process):
    host, port = address.split(":")
    deadline = time.monotonic() + SECONDS_MAX
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.05)
    fail("tansu takes no connection")


def last_lines(log):
    log.seek(0)
    return "\n".join(log.read().decode(errors="replace").splitlines()[-20:])


def refuse_unknown_names():
    """A name that no suite and no test has leaves out nothing, and its reason is no longer true of anything."""
    command = [TESTS, "--testing-library", "swift-testing", "--list-tests"]
    tests = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    if unknown := [name for names in LEFT_OUT.values() for name in names if name not in tests]:
        fail(f"no test has the name of what is to be left out: {', '.join(unknown)}")


def sum_up(ran, version, has_passed, seconds):
    """The last lines: what has not been run, and how the rest has ended."""
    for reason, names in LEFT_OUT.items():
        print(f"Left out, since {reason}:", *names, sep="\n    ")
    if has_passed:
        print(f"✔ {ran} have passed on {version}, in {seconds:.0f} s.")
    else:
        print(f"✘ The tests on {version} have failed, in {seconds:.0f} s: above the list of what is left out, "
              "the lines with ✘ say which.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", metavar="EXPRESSION", help="run what matches alone, in one process")
    options = parser.parse_args()
    start()
    if platform.machine() != PROGRAMS_MACHINE:
        fail(f"the broker's package is for {PROGRAMS_MACHINE} alone")
    library, program = unpack_librdkafka(), unpack_tansu()
    refuse_unknown_names()
    left_out = dict.fromkeys(name for names in LEFT_OUT.values() for name in names)
    skipped = ["^(?!IntegrationTests[.])", *map(re.escape, left_out)]
    command = ["scripts/test.py", *(f"--skip={each}" for each in skipped)]
    if options.filter:
        command.append(f"--filter={options.filter}")
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    began = time.monotonic()
    with tansu(program) as address:
        environment = {**os.environ, "LAMPLIGHTER_TEST_BOOTSTRAP": address, "LD_LIBRARY_PATH": str(library)}
        announce(*command)
        status = subprocess.run(command, cwd=ROOT, env=environment).returncode
    ran = "The tests that --filter selects" if options.filter else "All other tests"
    sum_up(ran, version, status == 0, time.monotonic() - began)
    sys.exit(status)


main()
