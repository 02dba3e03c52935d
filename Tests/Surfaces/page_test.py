# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What the tests of the live page share."""

import time
import unittest

from browser import Chromium, Tab
from mock_worker import MockWorker

# What the page promises, in seconds.
SHOWN_WITHIN = 2

READY = "!document.documentElement.hasAttribute('data-start') && document.querySelector('#pools tbody').rows.length > 0"

FOCUSED = """(() => {
    const element = document.activeElement;
    const style = getComputedStyle(element.type === 'radio' ? element.parentElement : element);
    return [element.id || element.getAttribute('aria-label') || element.getAttribute('aria-labelledby')
        || element.type || element.tagName, style.outlineStyle !== 'none'];
})()"""

HURRY = """
const [later, now] = [window.setTimeout, performance.now.bind(performance)];
window.setTimeout = (turn, time) => later(turn, time / SPEED);
performance.now = () => now() * SPEED;
"""


class PageTest(unittest.TestCase):
    """A browser, and workers with made-up statuses"""

    @classmethod
    def setUpClass(cls):
        cls.chromium = Chromium()
        cls.addClassCleanup(cls.chromium.close)

    def worker(self, *arguments, **options):
        worker = MockWorker(*arguments, **options)
        self.addCleanup(worker.close)
        return worker

    def tab(self, worker, *size, ready=READY, speed=1, **preferences):
        """Opens the page of a worker. Time in it can go by faster than outside."""
        tab = Tab(self.chromium, *size, **preferences)
        self.addCleanup(tab.close)
        if speed != 1:
            tab.before_load(HURRY.replace("SPEED", str(speed)))
        tab.open(worker.address)
        tab.until(ready)
        return tab

    def show(self, worker, status):
        """Changes a worker's status, and waits until its page shows it."""
        worker.status = status
        # The answer under way may be of the earlier one; when the page asks again, it has shown the last.
        turn = worker.turn
        deadline = time.monotonic() + 30
        while worker.turn < turn + 3:
            self.assertLess(time.monotonic(), deadline, "the page asks no more")
            time.sleep(0.02)

    def within_promise(self, tab, condition):
        seconds = tab.until(condition)
        self.assertLess(seconds, SHOWN_WITHIN, condition)
