#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What reading a record costs with a schema, beside JSON; see README.md."""

from results import Section, ratios, spread, table
from rig import Rig, number

ROUNDS = number("BENCH_ROUNDS", 5)
RECORDS = number("RECORDS", 500_000)
WAYS = [
    ("JSON", "json", "jsonBytes"), ("Avro, three fields wanted", "avroWanted", "avroBytes"),
    ("Avro, all of it", "avroWhole", "avroBytes"),
    ("Protobuf, three fields wanted", "protobufWanted", "protobufBytes"),
    ("Protobuf, all of it", "protobufWhole", "protobufBytes"),
]


def main():
    with Rig() as rig:
        section = Section(
            "records", "Records with a schema",
            f"make bench-records BENCH_ROUNDS={ROUNDS} RECORDS={RECORDS}")
        figures = []
        for _ in range(ROUNDS):
            figures.append(rig.bench("records", "--rounds", RECORDS))
            print(figures[-1], flush=True)
        section.add(
            "One order of twelve fields, from its bytes to three of them: two strings and an integer, by JSON "
            f"pointers. Avro and Protobuf become JSON first, which is then parsed. {RECORDS:,} records each way, "
            f"{ROUNDS} rounds, median (least–most).")
        base = [figure["json"] for figure in figures]
        rows = []
        for name, key, size in WAYS:
            values = [figure[key] for figure in figures]
            rows.append([name, f"{figures[0][size]}", spread(values, "ns"), spread(ratios(values, base))])
        section.add(table(["", "bytes", "CPU per record", "× JSON"], rows))
        section.add(
            "The same order, from its bytes to the event that a topic's binding makes of it: with a subject of one field, "
            "two conditions, and a payload of five fields with a collapse identifier.")
        events = [{event["name"]: event["nanoseconds"] for event in figure["events"]} for figure in figures]
        names = [event["name"] for event in figures[0]["events"]]
        rows = []
        for name in names:
            values = [event[name] for event in events]
            rows.append([name, spread(values, "ns"), spread(ratios(values, [event[names[0]] for event in events]))])
        section.add(table(["", "CPU per record", "× the first"], rows))
        section.write()


if __name__ == "__main__":
    main()
