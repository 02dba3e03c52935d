#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Instructions and allocations per push, by callgrind, held against instructions.json.

The machine's noise does not touch them, so a few per cent more are a change of the code. What counts is
what runs between the two times at which lamplighter-bench asks for its CPU: starting and warming up cost
nothing.

The short form, LAMPLIGHTER_SHORT=1, counts those of a debug build, more than ten times as many: it
goes on from the build of the tests. What the optimiser makes of the code only the long form shows: 9 % more
instructions per push were less than 1 % more here. So the short form tolerates little in the pipeline, whose
figures differ by a thousandth from time to time.
"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess

import rig as rigs

RECORD = pathlib.Path(__file__).with_name("instructions.json")
# A delivery thread takes more turns at one time than at another.
DISPATCH_TOLERANCE = 0.03
# An additional turn changes the second digit, an allocation in each push the first.
ALLOCATIONS_SLACK = 0.1
# Code that is not ours and has other instructions on another processor.
FOREIGN = ("libcrypto", "libssl")
# Code that is not ours either, but how much of it runs depends on ours. It is counted separately,
# since it is more than all the rest.
NGHTTP2 = "libnghttp2"
# Selects the same versions of memcpy and similar functions on every processor.
TUNABLES = ("glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX_Fast_Unaligned_Load,-ERMS,"
            "-Fast_Unaligned_Copy,-SSSE3,-SSE4_1,-MOVBE")
FAN_OUTS = [1, 10]


@dataclasses.dataclass(frozen=True)
class Form:
    """What is built, under which name its figures are recorded, and how much of it is run."""

    configuration: str
    name: str
    tokens: int
    # Those before what is counted, and those that are: of all tokens, and of full hand-overs.
    rounds: tuple[int, int]
    batches: tuple[int, int]
    # How much more than its record the pipeline may take.
    pipeline_tolerance: float

    def slack(self, name, part, known):
        if part == "allocations":
            return ALLOCATIONS_SLACK
        return known * (self.pipeline_tolerance if name.startswith("pipeline") else DISPATCH_TOLERANCE)


LONG = Form("release", "perPush", tokens=5000, rounds=(2, 6), batches=(2, 8), pipeline_tolerance=0.03)
SHORT = Form(
    "debug", "perPushOfDebugBuild", tokens=500, rounds=(2, 2), batches=(2, 2), pipeline_tolerance=0.015)
FORM = SHORT if os.environ.get("LAMPLIGHTER_SHORT", "0") != "0" else LONG
# One full hand-over at a time, whose answers come together, so that every turn has the same amount
# of work.
BATCH = 1000
ANSWER_DELAY = "150ms"
# At each call of it callgrind begins a file of its own; the second is what is counted.
LIMIT = "*ProcessUsage*cpuMicroseconds*"


class Profile:
    """What callgrind has counted in one run."""

    def __init__(self, path):
        self.counts = {"instructions": 0, "nghttp2": 0, "allocations": 0}
        names, library, called, is_call = {}, "", "", False
        for line in path.read_text().splitlines():
            reference = re.match(r"(c?)(ob|fn)=\((\d+)\)(?: (.*))?", line)
            if reference:
                callee, kind, number, name = reference.groups()
                if name is not None:
                    names[kind, number] = name
                name = names[kind, number]
                if kind == "ob" and not callee:
                    library = name
                elif kind == "fn" and callee:
                    called = name
            elif line.startswith("calls="):
                is_call = True
                if called in ("malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"):
                    self.counts["allocations"] += int(line[6:].split()[0])
            elif re.match(r"[0-9+*-]", line):
                # The line after calls= is for the callee, which is counted by its own lines.
                if not is_call and not any(name in library for name in FOREIGN):
                    part = "nghttp2" if NGHTTP2 in library else "instructions"
                    self.counts[part] += int(line.split()[1])
                is_call = False


def per_push(rig, name, arguments, pushes):
    """Instructions, those of nghttp2, and allocations."""
    out = rigs.ROOT / ".build" / "performance" / f"{re.sub('[ ,]+', '-', name)}.out"
    out.parent.mkdir(exist_ok=True)
    log = out.with_suffix(".log")
    for old in out.parent.glob(f"{out.name}*"):
        old.unlink()
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--dump-before={LIMIT}", f"--callgrind-out-file={out}",
         f"--log-file={log}", rig.folder / "lamplighter-bench", *map(str, arguments)],
        env=dict(os.environ, GLIBC_TUNABLES=TUNABLES), capture_output=True, text=True)
    if run.returncode != 0:
        rigs.fail(f"{name} has failed under valgrind: {run.stderr[-500:]}{log.read_text()[-500:]}")
    files = sorted(path.name for path in out.parent.glob(f"{out.name}*"))
    if files != [out.name, f"{out.name}.1", f"{out.name}.2"]:
        rigs.fail(f"{name} has asked for its CPU at other times than before and after what counts: {files}")
    counts = Profile(out.with_name(f"{out.name}.2")).counts
    return {part: round(count / pushes, 2) for part, count in counts.items()}


def measure():
    # A debug build is enough for the simulator. It is the one that the tests use, and a release build of
    # all the packages that it needs takes minutes.
    simulators = rigs.build("lamplighter-lab", configuration="debug")
    with rigs.Rig(simulators, FORM.configuration) as rig:
        # Removes debug information that valgrind cannot read; the functions' names remain.
        subprocess.run(
            ["strip", "-g", "-o", rig.folder / "lamplighter-bench",
             rig.programs / "lamplighter-bench"], check=True)
        figures = {}
        warm_up, rounds = FORM.rounds
        for fan_out in FAN_OUTS:
            name = f"pipeline, fan-out {fan_out}"
            figures[name] = per_push(
                rig, name, ["pipeline", "--tokens", FORM.tokens, "--fan-out", fan_out, "--warm-up", warm_up,
                            "--rounds", rounds], FORM.tokens * rounds)
        simulator = rig.simulator(delay=ANSWER_DELAY)
        warm_up, pushes = (count * BATCH for count in FORM.batches)
        figures["dispatch"] = per_push(
            rig, "dispatch",
            ["dispatch", *simulator.dispatch_arguments(), "--batch", BATCH, "--warm-up", warm_up, "--pushes",
             pushes], pushes)
        return figures


def complaints(figures, recorded):
    for name, figure in figures.items():
        for part, count in figure.items():
            known = recorded.get(name, {}).get(part)
            if known is None:
                yield f"{name} has no record of its {part}"
                continue
            print(f"{name}: {count:,g} {part} a push, recorded {known:,g}")
            slack = FORM.slack(name, part, known)
            if count > known + slack:
                yield f"{name} takes {count - known:,.1f} more {part} a push than {known:,g}"
            elif count < known - slack:
                print(f"{name} takes fewer {part} than before: record it, so that it stays so")


def toolchain():
    """What else decides the figures."""
    def said(*command):
        return subprocess.run(command, capture_output=True, text=True).stdout

    swift = re.search(r"Swift version (\S+)", said("swift", "--version"))
    return {"swift": swift[1] if swift else "", "libc": os.confstr("CS_GNU_LIBC_VERSION"),
            "nghttp2": said("pkg-config", "--modversion", "libnghttp2").strip()}


def main():
    figures = measure()
    if os.environ.get("WRITE"):
        reason = os.environ.get("REASON") or rigs.fail("say why in REASON='…'")
        known = json.loads(RECORD.read_text())
        # The figures of the other form are of another toolchain then, and no longer compared.
        kept = known if known["toolchain"] == toolchain() else {}
        record = {**kept, "reason": reason, "toolchain": toolchain(), FORM.name: figures}
        RECORD.write_text(json.dumps(record, indent=2) + "\n")
        print(RECORD.read_text())
        return
    record = json.loads(RECORD.read_text())
    if record["toolchain"] != toolchain():
        print(f"not comparable: recorded with {record['toolchain']}, measured with {toolchain()}")
        return
    found = list(complaints(figures, record.get(FORM.name, {})))
    if found:
        rigs.fail(
            "; ".join(found) + ". See what was added: callgrind_annotate .build/performance/*.out.2. "
            "If it is worth that, record it in both forms: WRITE=1 REASON='why' make check-performance, and "
            "the same with LAMPLIGHTER_SHORT=1")
    print("no push has become more expensive")


main()
