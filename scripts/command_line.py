# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What the Python programs of this folder share: the root, the first steps, and failing."""

import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def fail(message, status=1):
    print(f"{pathlib.Path(sys.argv[0]).stem}: {message}", file=sys.stderr)
    sys.exit(status)


def announce(*command):
    """Prints a command before it runs."""
    print("+", *command)


def start():
    """Prepares the process: each line is printed at once, also into a file, beside what other
    programs print there; and a signal to end becomes SystemExit, so that clean-up code runs."""
    sys.stdout.reconfigure(line_buffering=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
