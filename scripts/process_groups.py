# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Runs commands, each in a process group of its own, which ends with all that the command has started."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import threading
import time

from command_line import ROOT


@dataclasses.dataclass(frozen=True)
class Ended:
    """What became of a command: its exit status, or minus the signal that ended it, its seconds, and those
    of CPU with what it has waited for."""

    status: int
    seconds: float
    cpu_seconds: float
    was_late: bool


class ProcessGroups:
    """Runs commands from several threads, until all are ended."""

    def __init__(self, grace_seconds):
        # What a command that is ended has for ending what it has started in groups of their own.
        self.grace_seconds = grace_seconds
        self.lock = threading.Lock()
        self.running = {}
        self.is_ended = False

    def run(self, command, log, seconds_max, niceness=0, environment=None):
        """Runs a command to its end, its output into a file; one that takes longer is ended. Raises
        InterruptedError once all have been ended: it has not begun then."""
        began = time.monotonic()
        has_ended, was_late = threading.Event(), threading.Event()
        with self.lock:
            if self.is_ended:
                raise InterruptedError
            process = subprocess.Popen(
                ["nice", "-n", str(niceness), *command], cwd=ROOT, env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                # Not a session of its own: Linux shares out time between sessions first, and would not
                # look at how urgent their processes are.
                process_group=0)
            self.running[process.pid] = has_ended

        def end_late():
            was_late.set()
            self._end({process.pid: has_ended})
        limit = threading.Timer(seconds_max, end_late)
        limit.daemon = True
        limit.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            # A signal has ended the wait in the main thread; another has to look at the process meanwhile.
            threading.Thread(target=reap, args=(process, has_ended), daemon=True).start()
            self._end({process.pid: has_ended})
            raise
        finally:
            limit.cancel()
            with self.lock:
                del self.running[process.pid]
        process.returncode = os.waitstatus_to_exitcode(status)
        has_ended.set()
        # What it has left behind.
        send(process.pid, signal.SIGKILL)
        return Ended(process.returncode, time.monotonic() - began, usage.ru_utime + usage.ru_stime,
                     was_late.is_set())

    def end(self):
        """Ends what runs, and lets nothing begin any more."""
        with self.lock:
            self.is_ended = True
            running = dict(self.running)
        self._end(running)

    def _end(self, groups):
        for group in groups:
            send(group, signal.SIGTERM)
        deadline = time.monotonic() + self.grace_seconds
        for group, has_ended in groups.items():
            if not has_ended.wait(max(0, deadline - time.monotonic())):
                send(group, signal.SIGKILL)


def reap(process, has_ended):
    process.wait()
    has_ended.set()
    send(process.pid, signal.SIGKILL)


def send(group, number):
    """Signals a group, if one of its processes is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
