#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Proves that a clone and make suffice: a fresh Debian with git, make and a Swift toolchain clones
HEAD and runs a verb of the Makefile, `make run-local` unless VERB says another. Fails if that takes
longer than SECONDS_MAX from the clone on: 12 minutes for run-local, which sets up all that `make
demo` and `make test` need; an hour for any other verb.

The Debian is 12 (bookworm); SUITE=trixie is 13. Its Swift toolchain is this machine's, lent to it."""

import argparse
import os
import subprocess
import sys
import time

import debian_root
from command_line import ROOT, announce, fail, start
from debian_root import DebianRoot, Means, in_namespaces, proxies, run

SECONDS_MAX = {"run-local": 720}
# The folder of the clone in the fresh machine.
HOME = "/root/lamplighter"


def make_machine(folder, means):
    machine = DebianRoot(folder / "root", means)
    machine.bootstrap("ca-certificates", "git", "make")
    machine.lend_network()
    machine.lend_certificates()
    machine.mount_system()
    machine.lend(means.toolchain)
    machine.lend_git_settings()
    machine.lend_git_mirrors()
    return machine


def clone_and_make(machine, verb, seconds_max):
    began = time.monotonic()
    announce("git clone")
    run("git", "clone", "--quiet", "--no-hardlinks", ROOT, f"{machine.root}{HOME}")
    announce("make", verb)
    path = f"{machine.means.toolchain}/usr/bin:{debian_root.SYSTEM_PATH}"
    made = subprocess.run(
        machine.command(
            "timeout", "--kill-after=10", str(seconds_max), "make", "--directory", HOME, verb,
            environment=[f"PATH={path}", "HOME=/root", "LANG=C.UTF-8", *proxies()]),
        check=False)
    took = f"{time.monotonic() - began:.0f} s after the clone (at most {seconds_max})"
    if made.returncode != 0:
        fail(f"make {verb} failed on {machine.means.suite}, {took}")
    print(f"clean machine: make {verb} succeeded on {machine.means.suite} {took}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--suite", default=os.environ.get("SUITE") or "bookworm",
        help="the code name of the Debian (default: SUITE, bookworm)")
    parser.add_argument(
        "--verb", default=os.environ.get("VERB") or "run-local",
        help="the verb of the Makefile (default: VERB, run-local)")
    parser.add_argument(
        "--seconds-max", metavar="SECONDS", type=int, default=os.environ.get("SECONDS_MAX") or None,
        help="what fails, from the clone to the end of the verb (default: SECONDS_MAX)")
    debian_root.add_options(parser)
    options = parser.parse_args()
    start()
    means = Means(options.suite, options.mirror)
    if not options.inside:
        sys.exit(in_namespaces(__file__, sys.argv[1:], options.keep))
    seconds_max = options.seconds_max or SECONDS_MAX.get(options.verb, 3600)
    clone_and_make(make_machine(options.inside, means), options.verb, seconds_max)


main()
