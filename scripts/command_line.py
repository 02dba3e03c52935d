# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What the Python programs of this folder share: the root, the first steps, waiting for threads, and failing."""

import concurrent.futures
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def fail(message, status=1):
    print(f"{pathlib.Path(sys.argv[0]).stem}: {message}", file=sys.stderr)
    sys.exit(status)


def announce(*command):
    """Prints a command before it runs."""
    print("+", *command)


def start():
    """Prepares the process: each line is printed at once, also into a file, beside what other
    programs print there; and the first signal to end becomes SystemExit, so that clean-up code runs."""
    sys.stdout.reconfigure(line_buffering=True)
    for number in ENDS:
        signal.signal(number, end)


def as_completed(futures):
    """Yields each future once it has ended, as that of concurrent.futures does, and lets the process end meanwhile.

    Python looks at a signal when a wait ends. One that came just before the wait would be seen only once a future
    has ended, which takes minutes for a step of a check; so no wait is longer than a second."""
    waiting = set(futures)
    while waiting:
        ended, waiting = concurrent.futures.wait(
            waiting, timeout=1, return_when=concurrent.futures.FIRST_COMPLETED)
        yield from ended


def end(received, _):
    # make passes on what its whole group has been sent: a second one would end the clean-up.
    # Not SIG_IGN, which the programs that a clean-up starts would inherit.
    for number in ENDS:
        signal.signal(number, lambda *_: None)
    sys.exit(128 + received)
