#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What a worker's memory is: its files, its index, its other parts, and the rest; see README.md."""

import re
import time

import metrics
from fleet import Fleet
from results import Section, Target, plain, table
from rig import ROOT, Rig, fail, memory_bytes, number

TOKENS = number("TOKENS", 1_000_000)
FEW = 1_000
PUSHES = number("PUSHES", 500_000)
MEBIBYTE = 1 << 20
TARGET = Target(250, 200, "MiB")
# Parts of `lamplighter_memory_bytes` that have a row of their own.
SHOWN = ("index", "slab", "recent_subjects")
# As packages and images have it, with the Swift runtime in the program: of `make deb`.
STATIC = ROOT / ".build/static/release/lamplighter"


def parts(log):
    """Bytes of each part by the worker's own account."""
    text = metrics.read(metrics.url(log))
    return {name: int(float(value)) for name, value in re.findall(
        r'^lamplighter_memory_bytes{part="(\w+)"} (\S+)$', text, re.M)}


def account(process, log):
    """Bytes by what they are for."""
    of_parts = parts(log)
    anonymous = memory_bytes(process, "RssAnon")
    figures = {"program and libraries, from files": memory_bytes(process, "RssFile")}
    figures.update((name.replace("_", " "), of_parts[name]) for name in SHOWN)
    figures["its other parts"] = sum(of_parts.values()) - sum(of_parts[name] for name in SHOWN)
    # A part counts what it has reserved and not yet written.
    figures["the rest: Swift, librdkafka, OpenSSL, stacks"] = anonymous - sum(of_parts.values())
    figures["**resident**"] = memory_bytes(process, "VmRSS")
    figures["at most so far"] = memory_bytes(process, "VmHWM")
    return figures


def rested(process, log):
    """The account after what the start has left behind was given back."""
    time.sleep(5)
    return account(process, log())


def measure(rig, simulator, tokens):
    """Accounts of a worker with its index, after pushes, and of the program of packages, if there is one."""
    fleet = Fleet(rig, simulator, tokens, fan_outs=(1, 10))
    worker = fleet.workers[0]

    def log():
        return worker.log.read_text(errors="replace")

    ready = rested(worker, log)
    pushed = None
    # Of fewer tokens many pushes would be coalesced, and the emitter waits for each.
    if tokens > FEW:
        fleet.run(1, PUSHES)
        fleet.run(10, PUSHES)
        pushed = rested(worker, log)
    fleet.stop_workers()
    packaged = None
    if STATIC.exists():
        process = rig.start("static", STATIC, "run", "--config", fleet.folder / "lamplighter.yaml")
        rig.wait_for("the index", 600, lambda: "the index is complete" in rig.said("static"))
        packaged = rested(process, lambda: rig.said("static"))
        rig.end([process])
        (rig.folder / "static.log").unlink()
    fleet.stop()
    return [ready, pushed, packaged]


def main():
    if TOKENS < PUSHES:
        fail(f"TOKENS={TOKENS} are too few for PUSHES={PUSHES}: with one each, the second to a token would be coalesced")
    with Rig() as rig:
        section = Section("memory", "A worker's memory", f"make bench-memory TOKENS={TOKENS} PUSHES={PUSHES}")
        simulator = rig.simulator()
        few, many = (measure(rig, simulator, tokens) for tokens in (FEW, TOKENS))
        section.add(
            "In MiB, as the kernel and the worker's own metrics say. Each token has a registration of its own with two "
            f"subscriptions; ready with its index, after {PUSHES:,} pushes to one token and as many to ten, and ready as "
            "packages and images have the program, with the Swift runtime in it.")
        columns = [
            (f"{FEW:,} tokens", few[0]), (f"{TOKENS:,}, ready", many[0]), ("after the pushes", many[1]),
            (f"packaged, {FEW:,} tokens", few[2]), (f"packaged, {TOKENS:,}", many[2])]
        columns = [(name, figures) for name, figures in columns if figures]
        section.add(table(["", *(name for name, _ in columns)], [
            [name, *(plain(figures[name] / MEBIBYTE) for _, figures in columns)] for name in few[0]]))
        index = many[0]["index"] - few[0]["index"]
        section.add(f"A token more costs {index / (TOKENS - FEW):.0f} bytes of index.")
        rows = [[name, plain(figures["**resident**"] / MEBIBYTE),
                 *TARGET.cells(figures["**resident**"] / MEBIBYTE)]
                for name, figures in columns if str(f"{TOKENS:,}") in name]
        section.add(table(["resident", "MiB", "must", "goal", "result"], rows))
        section.write()


main()
