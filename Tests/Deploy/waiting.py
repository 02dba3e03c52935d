# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Waiting for what other processes do."""

import pathlib
import time

from manifests import PATIENCE


def wait_until(what, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE} s until {what}")
        time.sleep(0.02)


def has_gone(identifier):
    """Whether a process has ended; one that its parent has not looked at yet has, too."""
    try:
        status = pathlib.Path(f"/proc/{identifier}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rsplit(")", 1)[1].split()[0] == "Z"
