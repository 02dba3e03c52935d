#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""How long `lamplighter registrations import` takes, and how much memory; see README.md."""

import json
import os
import random
import subprocess
import time

from results import Section, Target, spread, table
from rig import APP, Rig, fail, number

ROUNDS = number("BENCH_ROUNDS", 5)
ROWS = number("ROWS", 1_000_000)
# The embedded Kafka keeps 5 MiB of a partition: so many hold a million registrations.
PARTITIONS = 64
SECONDS = Target(60, 30, "s")
MEMORY = Target(64, 48, "MiB")


def write_rows(path, gzip):
    """A file as PostgreSQL's `COPY … CSV HEADER` writes it."""
    source = random.Random(1)
    with open(path, "w") as file:
        file.write("id,device,push_token,seen_at,muted\n")
        for row in range(ROWS):
            file.write(f"{row},install-{row:08x},{source.getrandbits(256):064x},"
                       f"2026-10-{row % 28 + 1:02} 0{row % 10}:{row % 60:02}:00+00,f\n")
    if gzip:
        subprocess.run(["gzip", "-1", "-f", path], check=True)


def configure(rig, bootstrap):
    key = rig.folder / "key.p8"
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-out", key], check=True, capture_output=True)
    path = rig.folder / "lamplighter.yaml"
    path.write_text(f"""\
kafka: {{bootstrap: "{bootstrap}"}}
apns:
  credentials:
    home: {{team: ABCDE12345, keyID: FGHIJ67890, keyFile: {key}, apps: [{APP}]}}
log: {{level: warning}}
""")
    return path


def run(rig, configuration, file):
    """Imports the file, and returns the command's summary, seconds, and MiB."""
    command = [
        rig.programs / "lamplighter", "registrations", "import", file, "--config", configuration,
        "--format", "csv", "--columns",
        "installation=device,token=push_token,lastSeen=seen_at,optedOut=muted", "--app", APP,
        "--environment", "production", "--subject", "user-{id}", "--follow", "0s", "--json"]
    start = time.monotonic()
    with open(rig.folder / "import.out", "w") as out, open(rig.folder / "import.log", "w") as log:
        process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    if status != 0:
        fail(f"the import has failed: {(rig.folder / 'import.log').read_text()[-800:]}")
    summary = json.loads((rig.folder / "import.out").read_text().splitlines()[-1])
    return summary, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(rig, number, gzip):
    """One round: an import into an empty topic, and the same again."""
    bootstrap = rig.folder / f"bootstrap-{number}"
    kafka = rig.start(
        f"kafka-{number}", "lamplighter-lab", "simulate", "kafka", "--topics",
        f"lamplighter.registrations:{PARTITIONS},lamplighter.suppressions:4", "--bootstrap-file",
        bootstrap)
    rig.wait_for("the embedded Kafka", 30, lambda: bootstrap.exists() and bootstrap.read_text())
    configuration = configure(rig, bootstrap.read_text().strip())
    file = rig.folder / ("rows.csv.gz" if gzip else "rows.csv")
    first = run(rig, configuration, file)
    again = run(rig, configuration, file)
    rig.end([kafka])
    if first[0]["written"] != ROWS or again[0]["written"] != 0 or again[0]["known"] != ROWS:
        fail(f"of {ROWS} rows {first[0]} and then {again[0]}")
    return first, again


def main():
    with Rig() as rig:
        section = Section(
            "import", "Importing registrations",
            f"make bench-import BENCH_ROUNDS={ROUNDS} ROWS={ROWS}")
        write_rows(rig.folder / "rows.csv", gzip=False)
        rounds = []
        for round_number in range(ROUNDS):
            rounds.append(measure(rig, round_number, gzip=False))
            print(rounds[-1], flush=True)
        section.add(
            f"{ROWS:,} rows of CSV into an empty topic of an embedded Kafka on the same machine, and the same "
            f"file again, of which nothing is written; {ROUNDS} rounds, median (least–most). Without the wait "
            "at the end (`--follow 0s`).")
        rows = []
        for name, place in (("first", 0), ("again", 1)):
            figures = [each[place] for each in rounds]
            rows.append([
                name, spread([figure[1] for figure in figures], "s"),
                spread([figure[2] for figure in figures], "s"),
                spread([figure[3] for figure in figures], "MiB")])
        section.add(table(["", "time", "CPU of the command", "most memory"], rows))
        worst = [max(each[0][place] for each in rounds) for place in (1, 3)]
        section.add(table(
            ["slowest and largest first import", "must", "goal", "result"],
            [[f"{worst[0]:.1f} s", *SECONDS.cells(worst[0])],
             [f"{worst[1]:.0f} MiB", *MEMORY.cells(worst[1])]]))
        section.write()


if __name__ == "__main__":
    main()
