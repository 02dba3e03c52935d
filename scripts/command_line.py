# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What the Python programs of this folder share: the repository's root, failing, and ending."""

import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def fail(message, status=1):
    print(f"{pathlib.Path(sys.argv[0]).stem}: {message}", file=sys.stderr)
    sys.exit(status)


def announce(*command):
    """Prints a command before it runs; at once, also where the output is a file."""
    print("+", *command, flush=True)


def exit_on_signals():
    """Turns signals that end the process into SystemExit, so that clean-up code runs."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
