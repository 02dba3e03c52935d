#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Runs every test under AddressSanitizer (which also finds leaks, and undefined behaviour of the C
and C++ shims) and once more under ThreadSanitizer, each in a build of its own.

A finding fails the run wherever it is made, in the tests or in a process that they start; a process
that is killed cannot say what it leaked. What is passed over, and why, is in Tests/Sanitizers."""

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from command_line import ROOT, announce, fail, start

RULES = ROOT / "Tests/Sanitizers"
FINDING = re.compile(r"^SUMMARY: |: runtime error: ")
REPORT_LINES_MAX = 400
SANITIZERS = ("address", "thread")

BUILD_FLAGS = {
    # These checks are for the shims' C and C++; Swift has its own. The one that is left out needs a
    # library that Swift does not link.
    "address": ["-Xcc", "-fsanitize=undefined", "-Xcc", "-fno-sanitize=vptr"],
    # Where an element of an UnsafeMutableBufferPointer is changed in place, Swift 6.3 reports to
    # the sanitizer by reading all that the pointer is a part of, which the check of exclusive
    # access takes for a second access; and with a cast that its verifier refuses and its code
    # generator translates rightly.
    "thread": ["-Xswiftc", "-enforce-exclusivity=dynamic-only",
               "-Xswiftc", "-Xfrontend", "-Xswiftc", "-disable-llvm-verify"],
}


def skipped_tests():
    """The sentences in skipped.txt, each of which must be a test's name."""
    lines = (RULES / "skipped.txt").read_text().splitlines()
    sentences = [line for line in lines if line and not line.startswith("#")]
    tests = "".join(path.read_text() for path in (ROOT / "Tests").rglob("*.swift"))
    for sentence in sentences:
        if f"`{sentence}`" not in tests:
            fail(f"skipped.txt names no test: {sentence}")
        print(f"not run: {sentence} (skipped.txt)")
    return sentences


def environment(sanitizer, reports):
    """What has every process write its reports into the folder, each into a file of its own, since
    tests read what their processes print."""
    symbolizer = pathlib.Path(shutil.which("swift")).resolve().with_name("llvm-symbolizer")
    shared = f"log_path={reports}/report:external_symbolizer_path={symbolizer}"
    variables = {
        # For the tests that also measure time: see isTimed.
        "SANITIZER": sanitizer,
        # Swift's own backtrace would replace the sanitizer's report.
        "SWIFT_BACKTRACE": "enable=no",
    }
    if sanitizer == "address":
        # Swift's tasks move between threads, which the sanitizer's fake stack does not support.
        # Each thread of ours has an alternate signal stack of its own for crash reports, which the
        # sanitizer would take for its own and unmap.
        variables["ASAN_OPTIONS"] = f"detect_stack_use_after_return=0:use_sigaltstack=0:{shared}"
        variables["LSAN_OPTIONS"] = (
            f"suppressions={RULES}/leaks.txt:print_suppressions=0:{shared}")
        variables["UBSAN_OPTIONS"] = f"print_stacktrace=1:{shared}"
    else:
        variables["TSAN_OPTIONS"] = f"second_deadlock_stack=1:history_size=4:{shared}"
        variables["LD_PRELOAD"] = f"{reports}.so"
    return dict(os.environ, **variables)


def built(place, flags):
    """Builds the tests; returns whether that succeeded."""
    command = ["swift", "build", "--disable-index-store", "--build-tests", *place, *flags]
    announce(*command)
    build = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", env=dict(os.environ, SWIFT_BACKTRACE="enable=no"))
    for line in build.stdout:
        # The linker warns of each of the sanitizer's thousands of symbols.
        if "Cannot export local symbol" not in line:
            print(line, end="")
    return build.wait() == 0


def report_text(reports):
    return "".join(path.read_text(errors="replace") for path in sorted(reports.rglob("*"))
                   if path.is_file())


def findings(reports):
    """One line for each."""
    return [line for line in report_text(reports).splitlines() if FINDING.search(line)]


def reports_mistakes(sanitizer, scratch, reports, variables):
    """Whether the sanitizer reports Mistakes.swift: no reports are good news only from one that
    reports."""
    program = scratch / "mistakes"
    subprocess.run(
        ["swiftc", f"-sanitize={sanitizer}", "-o", program, RULES / "Mistakes.swift"],
        env=variables, stderr=subprocess.DEVNULL, check=False)
    if program.exists():
        subprocess.run([program], env=variables, check=False)
    has_reported = bool(findings(reports))
    for path in reports.iterdir():
        path.unlink()
    return has_reported


def passes(sanitizer, skipped, options):
    """Whether every test passed and no process had anything to report."""
    began = time.monotonic()
    scratch = ROOT / ".build" / sanitizer
    place = ["--sanitize", sanitizer, "--scratch-path", str(scratch.relative_to(ROOT))]
    if not built(place, BUILD_FLAGS[sanitizer]):
        return False

    reports = scratch / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    if sanitizer == "thread":
        subprocess.run(
            ["clang", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared",
             "-o", f"{reports}.so", RULES / "UnseenLocks.c"], check=True)
    variables = environment(sanitizer, reports)
    is_well = reports_mistakes(sanitizer, scratch, reports, variables)
    if is_well:
        skips = [option for sentence in skipped for option in ("--skip", sentence)]
        tests = subprocess.run(
            [ROOT / "scripts/test.py", "--jobs", "1", "--limit", "7200", "--scratch-path", scratch, *skips, *options],
            cwd=ROOT, env=variables, check=False)
        is_well = tests.returncode == 0
    else:
        print(f"sanitize: {sanitizer}: Mistakes.swift is not reported", file=sys.stderr)

    found = findings(reports)
    if found:
        print("\n".join(report_text(reports).splitlines()[:REPORT_LINES_MAX]))
        print("All findings, and how often each (the reports are in "
              f"{reports.relative_to(ROOT)}):")
        for line, count in collections.Counter(found).most_common():
            print(f"{count:7} {line}")
    minutes = (time.monotonic() - began) / 60
    print(f"{sanitizer}: {len(found)} reports, {minutes:.0f} min")
    return is_well and not found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, usage="%(prog)s [address|thread]... [-- OPTION...]",
        epilog="What follows -- are options of scripts/test.py, such as --filter.")
    parser.add_argument("sanitizers", nargs="*", metavar="address|thread")
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    sanitizers = parser.parse_args(arguments[:end]).sanitizers
    for name in sanitizers:
        if name not in SANITIZERS:
            fail(f"address or thread, not {name}", status=64)
    start()
    skipped = skipped_tests()
    # All of them run, even after one has failed.
    results = [passes(sanitizer, skipped, arguments[end + 1:])
               for sanitizer in sanitizers or SANITIZERS]
    sys.exit(0 if all(results) else 1)


main()
