#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Carries out the procedures of docs/runbook.md with a small fleet, and prints what it sees.

Two workers, an embedded Kafka, an APNs simulator and traffic, each a process. It takes four minutes
and checks nothing: what it prints is what the page quotes. Arguments choose some of the procedures.
"""

import json
import os
import signal
import subprocess
import sys
import time

from drill_fleet import APP, KEY, NEXT_KEY, TOKEN, Drill, show

# MARK: The procedures


def healthy(drill):
    time.sleep(8)
    drill.run("lamplighter check")
    drill.run("lamplighter topics check")
    drill.status()


def bad_record(drill):
    drill.mark()
    bootstrap = drill.values["bootstrap"]
    drill.run(f"kcat -P -b {bootstrap} -t lamplighter.events -p 0 -k door-1", given='{"subject": 5')
    time.sleep(6)
    for name in ("worker-1", "worker-2"):
        drill.log("events could not be read", 1, name)
    drill.run("lamplighter dead-letters list --since 1h")
    text = drill.configuration.read_text().replace("  startFrom:", "  skip: [lamplighter.events/0/9]\n  startFrom:")
    drill.configuration.write_text(text)
    drill.hang_up("worker-1")
    drill.log("reloaded")
    drill.write()


def dead_letters(drill):
    drill.write(attempts=2)
    drill.hang_up("worker-1", "worker-2")
    drill.run(
        f"lamplighter register --environment production --app {APP} --installation 6F1C "
        f"--handler GarageControls --class control --token {TOKEN} --kind com.example.garageDoor --subject fence-7"
    )
    time.sleep(4)
    drill.tell_apns(f"answer 500:InternalServerError token {TOKEN}")
    drill.run("lamplighter emit fence-7")
    time.sleep(9)
    drill.run("lamplighter dead-letters list --reason AttemptsExhausted")
    drill.tell_apns("rules clear")
    drill.run("lamplighter dead-letters redrive --reason AttemptsExhausted --dry-run")
    drill.run("lamplighter dead-letters redrive --reason AttemptsExhausted")
    time.sleep(3)
    ports = [drill.port_in(f"{name}.log", "for requests of operators") for name in ("worker-1", "worker-2")]
    for port in ports:
        drill.run(f"lamplighter explain --subject fence-7 http://127.0.0.1:{port}")
    drill.write(attempts=10)
    drill.hang_up("worker-1", "worker-2")


def key_rotation(drill):
    drill.mark()
    new = drill.folder / "secret" / f"AuthKey_{NEXT_KEY}.p8"
    made = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    new.write_bytes(subprocess.run(made, capture_output=True, check=True).stdout)
    drill.log("found a new signing key")
    drill.log("APNs refuses another signing key")
    show("(APNs: the new key is known, and the old one is revoked)")
    port = drill.values["port"]
    drill.stop("apns")
    drill.apns("--key-file", new, "--key-id", NEXT_KEY, port=port)
    drill.log("APNs accepts another signing key", 60)
    drill.log("pushes (wait|resume)", 5)
    (drill.folder / "secret" / f"AuthKey_{KEY}.p8").unlink()
    time.sleep(6)
    drill.status()


def adding_an_app(drill):
    drill.mark()
    line = "lamplighter emit --app com.example.New lamp-9"
    drill.run(line)
    show("(without the app of the events that name none)")
    drill.write(apps=f"{APP}, com.example.New")
    drill.stop("worker-2")
    drill.worker("worker-2")
    drill.log("events could not be read", 20, "worker-2")
    show("(with it)")
    drill.write(binding=f"app: {APP}")
    drill.hang_up("worker-1")
    drill.log("reloaded")
    drill.run("lamplighter check")
    for name in ("worker-1", "worker-2"):
        drill.stop(name)
        drill.worker(name)
    drill.run(line)


def wrong_environment(drill):
    drill.mark()
    drill.tell_apns("answer 400:BadDeviceToken share 60%")
    time.sleep(12)
    drill.log("pushes have failed for good", 60)
    drill.status()
    drill.run("lamplighter suppressions list --since 1h")
    drill.tell_apns("rules clear")
    drill.run("lamplighter dead-letters list --reason BadDeviceToken --limit 2")
    revoke = f"lamplighter suppressions revoke --app {APP} --environment production --since 1h"
    drill.run(f"{revoke} --dry-run")
    drill.run(revoke)


def apns_down(drill):
    drill.mark()
    drill.tell_apns("stall on")
    drill.log("pushes wait", 40)
    drill.status()
    drill.tell_apns("stall off")
    drill.log("pushes resume", 60)
    drill.mark()
    port, key = drill.values["port"], sorted((drill.folder / "secret").iterdir())[-1]
    drill.stop("apns")
    drill.log("cannot connect", 20)
    time.sleep(6)
    drill.status()
    drill.apns("--key-file", key, "--key-id", key.stem[8:], port=port)
    time.sleep(8)
    drill.status()


def kafka_down(drill):
    drill.mark()
    drill.tell_kafka("down 1")
    time.sleep(35)
    drill.status()
    drill.log("warning|error", 5)
    drill.tell_kafka("up 1")
    drill.log("up to date again|delivering", 40)
    time.sleep(10)
    drill.status()


def topic_lost(drill):
    drill.mark()
    drill.tell_kafka("topicerr lamplighter.dead-letters 3")
    drill.stop("worker-2")
    drill.start("worker-2", "lamplighter", "run", "--config", drill.configuration)
    show("(worker-2 starts while lamplighter.dead-letters is missing)")
    drill.running["worker-2"].wait(60)
    drill.log("dead-letters", 5, "worker-2")
    show(f"(exit code {drill.running.pop('worker-2').returncode})")
    drill.tell_kafka("topicerr lamplighter.dead-letters 0")
    drill.worker("worker-2")


def upgrade(drill):
    drill.mark()
    drill.running["worker-1"].send_signal(signal.SIGTERM)
    drill.running["worker-1"].wait(60)
    drill.log("stop|unassigned|totals", 5)
    show(f"(exit code {drill.running.pop('worker-1').returncode})")
    drill.mark()
    drill.worker("worker-1")
    drill.log("starting|complete|assigned", 20)
    ports = [drill.port_in(f"{name}.log", "for requests of operators") for name in ("worker-1", "worker-2")]
    drill.run("lamplighter status " + " ".join(f"http://127.0.0.1:{port}" for port in ports))


def changing_the_group(drill):
    for name in ("worker-1", "worker-2"):
        drill.stop(name)
    drill.write(group="lamplighter-blue")
    text = drill.configuration.read_text().replace("startFrom: earliest", "startFrom: latest")
    drill.configuration.write_text(text)
    drill.mark()
    drill.worker("worker-1")
    drill.log("assigned")
    drill.worker("worker-2")


def second_cluster(drill):
    """Copies the registrations into another Kafka, as MirrorMaker would, and starts a worker there."""
    other = drill.kafka("kafka-2")
    backup = drill.folder / "registrations.tsv"
    here = drill.values["bootstrap"]
    drill.run(f"sh -c 'kcat -C -e -q -b {here} -t lamplighter.registrations -K \"\\t\" > {backup}'")
    drill.run(f"sh -c 'wc -l < {backup}'")
    drill.run(f"sh -c 'kcat -P -Z -b {other} -t lamplighter.registrations -X partitioner=murmur2_random "
              f"-K \"\\t\" < {backup}'")  # fmt: skip
    drill.write(bootstrap=other)
    drill.worker("worker-3")
    drill.log("the index is complete", 20, "worker-3")
    drill.write(bootstrap=here)
    drill.stop("worker-3")


PROCEDURES = [healthy, bad_record, dead_letters, key_rotation, adding_an_app, wrong_environment, apns_down,
              kafka_down, topic_lost, upgrade, changing_the_group, second_cluster]  # fmt: skip


def main():
    chosen = sys.argv[1:]
    drill = Drill()
    try:
        show(json.dumps({name: process.pid for name, process in drill.running.items()}))
        for procedure in PROCEDURES:
            if not chosen or procedure.__name__ in chosen:
                show(f"\n=== {procedure.__name__}")
                procedure(drill)
    finally:
        if os.environ.get("KEEP_LOGS"):
            subprocess.run(["cp", "-r", drill.folder, os.environ["KEEP_LOGS"]], check=False)
        drill.close()


if __name__ == "__main__":
    main()
