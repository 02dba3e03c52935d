# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The Python environments below .build, each with what one check's list of requirements names."""

import fcntl
import subprocess
import sys

from command_line import ROOT, announce

BUILT = ROOT / ".build"
# Makes an environment in a second that takes pip a quarter of a minute of a core.
UV = "uv==0.13.9"
# The list of each check, and whether it names whatever its packages need too.
REQUIREMENTS = {
    "deploy": ("Tests/Deploy/requirements.txt", True),
    "examples": ("examples/backend-python/requirements.txt", True),
    "registrar": ("Tests/Registrar/requirements.txt", False),
    "schemas": ("Tests/Schemas/requirements.txt", False),
    "surfaces": ("Tests/Surfaces/requirements.txt", False),
}


def python_of(check):
    """The Python of a check's environment, which is made again if its list has changed."""
    path, is_complete = REQUIREMENTS[check]
    wanted = (ROOT / path).read_text()
    folder, tools = BUILT / f"{check}-venv", BUILT / "uv-venv"
    python, installed = folder / "bin/python", folder / "installed.txt"
    BUILT.mkdir(exist_ok=True)
    # It may be prepared in the background while a check begins.
    with open(BUILT / "venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists() or installed.read_text() != wanted:
            if not (tools / "bin/uv").exists():
                _run(sys.executable, "-m", "venv", "--clear", tools)
                _run(tools / "bin/pip", "install", "--quiet", "--disable-pip-version-check", UV)
            _run(sys.executable, "-m", "venv", "--clear", "--without-pip", folder)
            _run(tools / "bin/uv", "pip", "install", "--quiet", "--python", python,
                 *["--no-deps"] * is_complete, "--requirement", ROOT / path)
            installed.write_text(wanted)
    return python


def _run(*command):
    announce(*command)
    subprocess.run(command, cwd=ROOT, check=True)
