# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What the tests of the live page share."""

import time
import unittest

from browser import Chromium, Tab
from mock_worker import MockWorker
from processes import PATIENCE

READY = "!document.documentElement.hasAttribute('data-start') && document.querySelector('#pools tbody').rows.length > 0"

FOCUSED = """(() => {
    const element = document.activeElement;
    const style = getComputedStyle(element.type === 'radio' ? element.parentElement : element);
    return [element.id || element.getAttribute('aria-label') || element.getAttribute('aria-labelledby')
        || element.type || element.tagName, style.outlineStyle !== 'none'];
})()"""

# The page's clock: it goes SPEED times as fast as the real one, and jumps by `ahead` milliseconds.
CLOCK = """{
    const [later, now, begun] = [window.setTimeout, Date.now, Date.now()];
    window.ahead = 0;
    window.setTimeout = (turn, time) => later(turn, time / SPEED);
    Date.now = () => begun + (now() - begun) * SPEED + window.ahead;
    window.age = () => Date.now() - begun;
}"""


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

    def tab(self, worker, *size, ready=READY, speed=5, **preferences):
        """Opens the page of a worker. Time in it goes by faster than outside."""
        tab = Tab(self.chromium, *size, **preferences)
        self.addCleanup(tab.close)
        tab.before_load(CLOCK.replace("SPEED", str(speed)))
        tab.open(worker.address)
        tab.until(ready)
        return tab

    def show(self, worker, status):
        """Changes a worker's status, and waits until its page must show it: when it asks for the
        second time after the change. Turns are counted, not seconds, so a busy machine is no matter."""
        worker.status = status
        # What is under way may be of the earlier status. The next answer is not, and when the page asks
        # once more, it has shown that one.
        turn = worker.turn
        deadline = time.monotonic() + PATIENCE
        while worker.turn < turn + 2:
            self.assertLess(time.monotonic(), deadline, "the page asks no more")
            time.sleep(0.02)
