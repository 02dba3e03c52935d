#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Looks at the programs, and at what is delivered with them, with other people's programs.

A check's tests are in its folder below Tests, whose modules say what they show. What they need is
installed and built first: Debian's packages, a Python environment, and the debug programs unless
LAMPLIGHTER_PROGRAMS names a folder that has them. `prepare` does that alone, but for the debug
programs, for the checks that are named, or for all. Tests are chosen as `python3 -m unittest` takes
them: test_tls, test_tls.Encrypted."""

import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys

from command_line import ROOT, announce, start
from environments import python_of, unpack_cluster_programs

# A container may see many cores but have the time of two.
JOBS_MAX = 8
EXAMPLES = ROOT / ".build/examples"
# Debian's Go libraries are sources under this path, so nothing is downloaded.
DEBIAN_GO = {
    "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "", "GOCACHE": str(ROOT / ".build/go-cache")}


@dataclasses.dataclass(frozen=True)
class Check:
    """One folder of tests."""

    folder: str
    # The debug programs that the tests start.
    products: tuple[str, ...] = ("lamplighter", "lamplighter-lab")
    # What takes longest and so begins first: modules, or classes of them.
    first: tuple[str, ...] = ()
    # How many tests run side by side for each core: most wait.
    jobs_per_core: int = 3


CHECKS = {
    "deploy": Check("Tests/Deploy", first=(
        "test_kubernetes.Kustomize.test_every_breakage", "test_alerts.Rules.test_their_tests", "test_compose.Programs",
        "test_registrar.Program", "test_components.Build", "test_procedures")),
    "examples": Check("Tests/Examples", first=("test_backends", "test_apple_sources")),
    "registrar": Check("Tests/Registrar", first=(
        "test_moving", "test_client", "test_interface.Description", "test_replicas.Losses", "test_tls", "test_delivery")),
    "schemas": Check("Tests/Schemas", products=("lamplighter-lab",)),
    "surfaces": Check("Tests/Surfaces", first=(
        "test_otlp.Collector", "test_page_for_everybody", "test_live_page", "test_real_worker", "test_otlp",
        "test_demo_page")),
}


def run(*command, folder=ROOT, **environment):
    announce(*command)
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, **environment})


def build_backend():
    """Compiles the garage app's backend in Go."""
    main = ROOT / "examples/backend-go/main.go"
    run("go", "vet", main, **DEBIAN_GO)
    run("go", "build", "-o", EXAMPLES / "backend-go", main, **DEBIAN_GO)


# What else a check's tests use, that is built or fetched here.
FOREIGN = {"deploy": unpack_cluster_programs, "examples": build_backend}


def prepare(*names):
    """Installs and builds what some checks need of other people's; returns the last one's Python."""
    run("scripts/bootstrap.sh", *names)
    for name in names:
        FOREIGN.get(name, lambda: None)()
        python = python_of(name)
    return python


def build_swift_backend():
    run("swift", "build", "--product", "backend", "--scratch-path", EXAMPLES / "swift",
        folder=ROOT / "examples/backend-swift")


def write_manifests(python):
    run(python, "-c", "import manifests; manifests.write_manifests()", PYTHONPATH=str(ROOT / "Tests/Deploy"))


def run_tests(check, python, options):
    """Becomes the program that runs the tests."""
    # What a test imports is compiled once, and not beside its source.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(ROOT / ".build/pycache")}
    environment.setdefault("LAMPLIGHTER_PROGRAMS", str(ROOT / ".build/debug"))
    if options.short:
        environment["LAMPLIGHTER_SHORT"] = "1"
    if os.environ.get("SCREENSHOTS"):
        environment["SCREENSHOTS"] = str(pathlib.Path(os.environ["SCREENSHOTS"]).resolve())
    jobs = options.jobs or min(check.jobs_per_core * os.cpu_count(), JOBS_MAX)
    command = [python, ROOT / "scripts/python_tests.py", "--jobs", str(jobs),
               *(f"--first={each}" for each in check.first), *options.tests]
    os.chdir(ROOT / check.folder)
    os.execve(python, command, environment)


def parsed_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check", choices=[*CHECKS, "prepare"])
    parser.add_argument(
        "--jobs", type=int, metavar="NUMBER", help="how many tests run side by side")
    parser.add_argument(
        "--short", action="store_true", default=os.environ.get("LAMPLIGHTER_SHORT", "0") != "0",
        help="try fewer combinations of the same kind; the same as LAMPLIGHTER_SHORT=1")
    parser.add_argument(
        "--write", action="store_true",
        help="of deploy: write what is written from the chart and the rules instead of checking")
    parser.add_argument("tests", nargs="*", help="names of tests, or of prepare: of checks")
    return parser.parse_intermixed_args()


def main():
    options = parsed_options()
    start()
    try:
        if options.check == "prepare":
            prepare(*options.tests or CHECKS)
            return
        check = CHECKS[options.check]
        python = prepare(options.check)
        run("scripts/build-debug.sh", *check.products)
        if options.check == "examples" and os.environ.get("SWIFT", "0") != "0":
            build_swift_backend()
        if options.write:
            write_manifests(python)
            return
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    run_tests(check, python, options)


main()
