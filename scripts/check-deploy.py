#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Checks what deploy/ has with other people's programs. Each test_*.py of Tests/Deploy says which, and
what it cannot show; arguments choose some of the tests, as `python3 -m unittest` takes them."""

import argparse
import os
import subprocess
import sys

from command_line import ROOT, announce, start

TESTS = ROOT / "Tests/Deploy"
REQUIREMENTS = TESTS / "requirements.txt"
VENV = ROOT / ".build/deploy-venv"
PYTHON = VENV / "bin/python"


def run(*command, **options):
    announce(*command)
    subprocess.run(command, cwd=ROOT, check=True, **options)


def install():
    """Installs the packages of requirements.txt, if they are not those of the last time."""
    installed = VENV / "installed.txt"
    if installed.exists() and installed.read_text() == REQUIREMENTS.read_text():
        return
    run(sys.executable, "-m", "venv", "--clear", VENV)
    run(PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", REQUIREMENTS)
    installed.write_text(REQUIREMENTS.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true",
                        help="write what is written from the chart and the rules instead of checking")
    parser.add_argument("tests", nargs="*", help="names of tests; all when none is given")
    options = parser.parse_args()
    start()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run("scripts/bootstrap.sh", "deploy")
        install()
        # The tests try each configuration, and the worker prints its schema. LAMPLIGHTER_PROGRAMS names a
        # folder that has the programs.
        if "LAMPLIGHTER_PROGRAMS" not in os.environ:
            for product in ("lamplighter", "lamplighter-lab"):
                run("swift", "build", "--product", product)
        if options.write:
            run(PYTHON, "-c", "import manifests; manifests.write_manifests()",
                env={**environment, "PYTHONPATH": str(TESTS)})
            return
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    os.chdir(TESTS)
    command = ["unittest", "--verbose", *options.tests] if options.tests else [
        "unittest", "discover", "--verbose"]
    os.execve(PYTHON, [PYTHON, "-m", *command], environment)


main()
