#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Checks examples/ and what the pages quote from it: types of the app's sources, and the backends in Python
and Go against a registrar and the embedded Kafka; the one in Swift is parsed. SWIFT=1 also builds and tests
that one, whose dependencies take minutes. Arguments choose some of the tests, as `python3 -m unittest` takes
them."""

import os
import subprocess
import sys

from command_line import ROOT, announce, start

TESTS = ROOT / "Tests/Examples"
BUILT = ROOT / ".build/examples"
REQUIREMENTS = ROOT / "examples/backend-python/requirements.txt"
VENV = BUILT / "venv"
PYTHON = VENV / "bin/python"


def run(*command, environment=None, folder=ROOT):
    announce(*command)
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, **(environment or {})})


def install():
    """Installs the packages of requirements.txt, if they are not those of the last time."""
    installed = VENV / "installed.txt"
    if installed.exists() and installed.read_text() == REQUIREMENTS.read_text():
        return
    run(sys.executable, "-m", "venv", "--clear", VENV)
    run(PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", REQUIREMENTS)
    installed.write_text(REQUIREMENTS.read_text())


def build():
    # The libraries are Debian's packages, so nothing is downloaded.
    debian = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode"}
    run("go", "vet", ROOT / "examples/backend-go/main.go", environment=debian)
    run("go", "build", "-o", BUILT / "backend-go", ROOT / "examples/backend-go/main.go", environment=debian)
    if os.environ.get("SWIFT", "0") != "0":
        run("swift", "build", "--product", "backend", "--scratch-path", BUILT / "swift",
            folder=ROOT / "examples/backend-swift")
    # LAMPLIGHTER_PROGRAMS names a folder that has the programs.
    if "LAMPLIGHTER_PROGRAMS" not in os.environ:
        for product in ("lamplighter", "lamplighter-lab"):
            run("swift", "build", "--product", product)


def main():
    start()
    try:
        run("scripts/bootstrap.sh", "examples")
        BUILT.mkdir(parents=True, exist_ok=True)
        install()
        build()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    os.chdir(TESTS)
    command = ["unittest", "--verbose", *sys.argv[1:]] if sys.argv[1:] else [
        "unittest", "discover", "--verbose"]
    os.execve(PYTHON, [PYTHON, "-m", *command], {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})


main()
