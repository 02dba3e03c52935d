# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Drives a headless Chromium by the DevTools protocol, over a pipe and with the standard library alone."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from processes import PATIENCE

# Each shift of the layout, with the elements that moved.
WATCH_SHIFTS = """
window.layoutShifts = [];
new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries()) {
        const moved = sources.map(({ node, previousRect, currentRect }) => {
            const named = node?.id ? node : node?.parentElement?.closest('[id]');
            return `${node?.nodeName} in #${named?.id}: ${[previousRect, currentRect].map((rect) =>
                [rect.x, rect.y, rect.width, rect.height].map(Math.round).join()).join(' -> ')}`;
        });
        window.layoutShifts.push({ value, moved });
    }
}).observe({ type: 'layout-shift', buffered: true });
"""

# The pauses that the page has made, in milliseconds: one after each of its turns.
WATCH_TURNS = """{
    const later = window.setTimeout;
    window.pauses = [];
    window.setTimeout = (turn, time) => { window.pauses.push(time); return later(turn, time); };
}"""

# A busy machine may take longer to answer than a page waits.
WAIT_FOR_ANSWERS = "AbortSignal.timeout = () => new AbortController().signal;"


class ProtocolError(Exception):
    """Chromium refused a command, ended or did not answer."""


class Chromium:
    """A Chromium process."""

    def __init__(self):
        program = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        self.profile = tempfile.mkdtemp(prefix="lamplighter-chromium-")
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        arguments = [
            program,
            "--headless=new",
            "--remote-debugging-pipe",
            f"--user-data-dir={self.profile}",
            "--no-first-run",
            # In a container there are neither namespaces for the sandbox nor room in /dev/shm; what is opened
            # comes from this machine alone.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--force-color-profile=srgb",
        ]
        # Chromium reads commands from descriptor 3 and writes to descriptor 4.
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "chromium", *arguments],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self.received = b""
        self.last = 0
        self.events = []

    def close(self):
        """Ends the process."""
        try:
            self.command("Browser.close")
        except (ProtocolError, OSError):
            self.process.kill()
        self.process.wait(timeout=PATIENCE)
        os.close(self.commands)
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def command(self, method, session=None, **parameters):
        """Sends a command and returns its result."""
        self.last += 1
        number = self.last
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.read(deadline)
            if answer is None:
                raise ProtocolError(f"{method}: no answer")
            if answer.get("id") == number:
                if "error" in answer:
                    raise ProtocolError(f"{method}: {answer['error']}")
                return answer["result"]

    def read(self, deadline):
        """Returns the next message, or nothing if there is none in time; events are kept, too."""
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.answers], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return None
            some = os.read(self.answers, 1 << 20)
            if not some:
                raise ProtocolError("Chromium has ended")
            self.received += some
        line, _, self.received = self.received.partition(b"\0")
        message = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message


class Tab:
    """A page in a tab of its own, with no history, storage or cookies."""

    def __init__(self, chromium, width=1280, height=900, **media):
        self.chromium = chromium
        self.context = chromium.command("Target.createBrowserContext")["browserContextId"]
        self.target = chromium.command(
            "Target.createTarget", url="about:blank", browserContextId=self.context
        )["targetId"]
        self.session = chromium.command("Target.attachToTarget", targetId=self.target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")
        self.resize(width, height)
        self.prefer(**media)
        for script in (WATCH_SHIFTS, WATCH_TURNS, WAIT_FOR_ANSWERS):
            self.before_load(script)

    def close(self):
        self.chromium.command("Target.disposeBrowserContext", browserContextId=self.context)

    def command(self, method, **parameters):
        return self.chromium.command(method, self.session, **parameters)

    def resize(self, width, height, scale=1):
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def prefer(self, scheme="dark", motion="no-preference"):
        """Sets the user's preferences."""
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        self.command(
            "Emulation.setEmulatedMedia",
            features=[{"name": name, "value": value} for name, value in features.items()],
        )

    def before_load(self, script):
        """Runs a script in each page before its own."""
        self.command("Page.addScriptToEvaluateOnNewDocument", source=script)

    def open(self, address):
        self.command("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, expression):
        """Returns the value of an expression in the page."""
        result = self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise ProtocolError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def text(self, selector):
        """Returns the visible text of an element."""
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def until(self, condition, seconds=PATIENCE):
        """Waits until a condition holds, and returns how many seconds that took."""
        start = time.monotonic()
        while not self.value(condition):
            if time.monotonic() - start > seconds:
                state = self.value("document.body?.innerText")
                raise ProtocolError(f"never within {seconds} s: {condition}\n{state}\n{self.complaints()}")
            time.sleep(0.02)
        return time.monotonic() - start

    def turns(self, number):
        """Waits for the page to ask and show so many times, of which the first may be under way."""
        done = self.value("window.pauses.length")
        self.until(f"window.pauses.length >= {done + number}")

    def press(self, key, code=0, text=""):
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            self.command(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                text=text if kind == "keyDown" else "",
            )

    def write(self, text):
        self.command("Input.insertText", text=text)

    def complaints(self, of_status=True):
        """Returns what the page has written to the console, and what Chromium has said about it; or without
        what Chromium itself says when a worker gives no status, which no page can prevent."""
        self.value("0")
        found = []
        for event in self.chromium.events:
            if event.get("sessionId") != self.session:
                continue
            parameters = event["params"]
            if event["method"] == "Runtime.consoleAPICalled":
                found.append(" ".join(str(value.get("value")) for value in parameters["args"]))
            elif event["method"] == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif event["method"] == "Log.entryAdded":
                entry = parameters["entry"]
                is_of_status = entry["text"].startswith("Failed to load resource: ") and entry.get(
                    "url", "").endswith("/status")
                if of_status or not is_of_status:
                    found.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")
        return found

    def requested(self):
        """Returns the addresses that the page has asked for."""
        self.value("0")
        return [
            event["params"]["request"]["url"]
            for event in self.chromium.events
            if event.get("sessionId") == self.session and event["method"] == "Network.requestWillBeSent"
        ]

    def layout_shifts(self):
        return self.value("window.layoutShifts")

    def screenshot(self, path):
        """Writes the visible part of the page as a PNG."""
        image = self.command("Page.captureScreenshot", format="png", optimizeForSpeed=False)
        with open(path, "wb") as file:
            file.write(base64.b64decode(image["data"]))
