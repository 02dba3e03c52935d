# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The page that the demo serves: its workers, and a wall of its devices."""

import os
import re
import time
import unittest

from browser import Chromium, Tab
from processes import PATIENCE, Processes


class DemoPage(unittest.TestCase):
    """The demo's page"""

    def test_shows_both_workers_and_lights_the_devices(self):
        chromium = Chromium()
        self.addCleanup(chromium.close)
        demo = Processes()
        self.addCleanup(demo.close)
        # Fewer installations than somebody who looks at it has: the wall shows 400 devices of any number.
        demo.start("demo", "lamplighter-lab", "demo", "--duration", 300, "--installations", 600)
        address = demo.wait_for("the address", lambda: re.search(
            r"the live page is at (\S+)", demo.printed("demo.log")))[1]
        tab = Tab(chromium, 1280, 960)
        self.addCleanup(tab.close)
        tab.open(address)
        tab.until("document.querySelectorAll('#devices i').length === 400")
        tab.until("document.querySelector('#phase').textContent === 'Running'")
        # The demo first writes its registrations, which takes a busy machine more than a minute.
        tab.until("document.getAnimations().length > 0", 2 * PATIENCE)
        for worker in (2, 1):
            tab.value(f"document.querySelectorAll('#workers input')[{worker - 1}].click()")
            tab.until("parseInt(document.querySelector('#accepted-rate').textContent) > 0")
        folder = os.environ.get("SCREENSHOTS")
        if folder:
            time.sleep(25)
            tab.screenshot(os.path.join(folder, "live-page-demo.png"))


if __name__ == "__main__":
    unittest.main()
