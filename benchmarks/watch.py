# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What each thread of a fleet and its simulator takes of the cores while pushes are sent."""

import os
import threading
import time

import rig as rigs

# The kinds of a worker's threads, by the beginnings of their names.
KINDS = {"planner": "planner", "delivery-": "delivery", "rdk:": "librdkafka"}
OTHER, SIMULATOR = "other", "simulator"


class Mark:
    """How far a run is, and what each thread has taken of the cores until then."""

    def __init__(self, fleet):
        self.at, self.accepted = time.monotonic(), fleet.simulator.accepted()
        self.idle = rigs.idle_seconds()
        self.threads = {
            thread: (next((kind for start, kind in KINDS.items() if name.startswith(start)),
                          OTHER), seconds)
            for worker in fleet.workers
            for thread, (name, seconds) in rigs.thread_seconds(worker).items()}
        self.threads.update(
            (thread, (SIMULATOR, seconds))
            for thread, (_, seconds) in rigs.thread_seconds(fleet.simulator.process).items())

    def seconds(self, wanted):
        """Of all threads of a kind."""
        return sum(seconds for kind, seconds in self.threads.values() if kind == wanted)


class Stretch:
    """From one mark to another."""

    def __init__(self, first, last):
        self.first, self.last = first, last
        self.elapsed = last.at - first.at
        self.accepted = last.accepted - first.accepted

    def rate(self):
        return self.accepted / self.elapsed

    def microseconds(self, kind):
        """Of CPU, for each push."""
        return sum(self._seconds(kind)) * 1e6 / self.accepted

    def busiest(self, kind):
        """What the busiest thread of a kind takes of a core."""
        return max(self._seconds(kind)) / self.elapsed

    def _seconds(self, wanted):
        """Of each thread of a kind that is still there."""
        return [seconds - self.first.threads.get(thread, (kind, 0))[1]
                for thread, (kind, seconds) in self.last.threads.items() if kind == wanted]

    def cores(self):
        """The share of the machine that is busy, with whatever."""
        return 1 - (self.last.idle - self.first.idle) / self.elapsed / os.cpu_count()


class Watch:
    """Looks on while a run goes from its first push to its last."""

    EVERY_SECONDS = 0.01

    def __init__(self, fleet, pushes):
        self.fleet, self.pushes = fleet, pushes

    def __enter__(self):
        self.marks = [Mark(self.fleet)]
        self.is_over = threading.Event()
        self.looking = threading.Thread(target=self._look)
        self.looking.start()
        return self

    def __exit__(self, kind, *_):
        self.is_over.set()
        self.looking.join()
        if kind is None and len(self.marks) < 3:
            rigs.fail("a run was over before it was seen: it needs more PUSHES")
        self.marks.append(Mark(self.fleet))

    def _look(self):
        """Leaves marks when a tenth of the pushes is accepted, and when all but a tenth is."""
        for share in (0.1, 0.9):
            wanted = self.marks[0].accepted + share * self.pushes
            while self.fleet.simulator.accepted() < wanted:
                if self.is_over.wait(self.EVERY_SECONDS):
                    return
            self.marks.append(Mark(self.fleet))

    def whole(self):
        return Stretch(self.marks[0], self.marks[-1])

    def middle(self):
        """When everything is busy."""
        return Stretch(*self.marks[1:3])
