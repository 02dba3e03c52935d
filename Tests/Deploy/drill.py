#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Carries out the procedures of docs/runbook.md with a small fleet, and prints what it sees.

Two workers, an embedded Kafka, an APNs simulator and traffic, each a process. It takes five minutes
and checks nothing: what it prints is what the page quotes. Arguments choose some of the procedures.
OLD_LAMPLIGHTER names the program of an older version, for the upgrade of a mixed fleet.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

from drill_fleet import APP, ENVIRONMENT, KEY, NEXT_KEY, TOKEN, Drill, show

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


def crash_in_a_record(drill):
    """Kills a worker while it reads a record, as a record that crashes it would."""
    kept = drill.folder / "last-record"
    own = drill.folder / "worker-3.yaml"
    own.write_text(f"{drill.configuration.read_text()}intake: {{lastRecordFile: {kept}}}\n")
    drill.worker("worker-3", own)
    drill.stop("traffic")
    drill.start_traffic(rate=4000)
    worker = drill.running["worker-3"]
    for _ in range(5000):
        time.sleep(0.002)
        worker.send_signal(signal.SIGSTOP)
        # Not zero while a record is read.
        if any(kept.read_bytes()[:8]):
            break
        worker.send_signal(signal.SIGCONT)
    drill.running.pop("worker-3").kill()
    drill.stop("traffic")
    drill.start_traffic()
    drill.worker("worker-3", own)
    drill.log("the previous process ended", 30, "worker-3")
    said = re.search(r'event record (\S+)/(\d+)/(\d+);', drill.printed("worker-3.log"))
    if said:
        topic, partition, offset = said.groups()
        drill.run(f"kcat -C -e -q -b {drill.values['bootstrap']} -t {topic} -p {partition} -o {offset} -c 1 "
                  "-f '%T %k %s\\n'")  # fmt: skip
        own.write_text(own.read_text().replace(
            "  startFrom:", f"  skip: [{topic}/{partition}/{offset}]\n  startFrom:"))
        drill.stop("worker-3")
        drill.worker("worker-3", own)
        drill.log("the index is complete|assigned", 30, "worker-3")
    drill.stop("worker-3")


def dead_letters(drill):
    drill.write(attempts=2)
    drill.hang_up("worker-1", "worker-2")
    drill.register("fence-7", TOKEN)
    time.sleep(4)
    drill.tell_apns(f"answer 500:InternalServerError token {TOKEN}")
    drill.run("lamplighter emit fence-7")
    time.sleep(9)
    drill.run("lamplighter dead-letters list --reason AttemptsExhausted")
    drill.tell_apns("rules clear")
    drill.run("lamplighter dead-letters redrive --reason AttemptsExhausted --dry-run")
    drill.run("lamplighter dead-letters redrive --reason AttemptsExhausted")
    time.sleep(3)
    drill.run(f"lamplighter explain --subject fence-7 {drill.urls()}")
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
    # Some of these are in partitions of the worker with two apps.
    drill.register("fence-8", "00fc13ab", "6F1E")
    time.sleep(4)
    for partition in range(4):
        drill.changed("fence-8", partition)
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
    drill.run("lamplighter dead-letters list --reason missingApp")
    drill.run("lamplighter dead-letters redrive --reason missingApp --dry-run")
    drill.run("lamplighter dead-letters redrive --reason missingApp --rate 100")
    time.sleep(5)
    drill.run(f"lamplighter explain --subject fence-8 {drill.urls()}")
    drill.run("lamplighter dead-letters list --reason missingApp --since 10s")


def forgetting_a_person(drill):
    token = "00fc13ac"
    drill.register("fence-9", token, "7A2D")
    drill.register("shed-9", "00fc13ad", "7A2D", "ShedControls")
    time.sleep(4)
    drill.tell_apns(f"answer 410:Unregistered token {token}")
    drill.run("lamplighter emit fence-9")
    time.sleep(4)
    drill.tell_apns("rules clear")
    explain = f"lamplighter explain --installation 7A2D --app {APP} {drill.urls()}"
    drill.run(explain)
    drill.run("lamplighter registrations forget --installation 7A2D --dry-run")
    drill.run("lamplighter registrations forget --installation 7A2D")
    time.sleep(4)
    drill.run(explain)
    drill.run("lamplighter registrations forget --installation 7A2D")
    drill.run("lamplighter emit fence-9")
    time.sleep(3)
    drill.register("shed-9", "00fc13ae", "7A2E")
    drill.run("lamplighter registrations forget --subject shed-9")


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


def stopping_pushes(drill):
    drill.mark()
    drill.register("fence-10", "00fc13b0", "6F20")
    time.sleep(4)
    drill.run(f"lamplighter pause --app {APP} --for 30m --reason 'the backend is slow' --by anna")
    drill.log("restricted by an operator")
    drill.run("lamplighter emit fence-10")
    time.sleep(15)
    drill.run("lamplighter restrictions")
    drill.status()
    drill.run("lamplighter deferred list")
    drill.run(f"lamplighter limit --app {APP} --rate 10/s --by anna")
    time.sleep(4)
    drill.run("lamplighter restrictions")
    drill.run(f"lamplighter resume --app {APP} --by anna")
    drill.log("no longer restricted")
    time.sleep(5)
    drill.run(f"lamplighter explain --subject fence-10 {drill.urls()}")
    show("(a topic)")
    drill.run("lamplighter pause --topic lamplighter.events --by anna")
    time.sleep(8)
    drill.run(f"lamplighter status {drill.urls()}")
    drill.run("lamplighter resume --topic lamplighter.events --by anna")
    show("(a subject, and a drop that has ended by itself)")
    subject = f"--app {APP} --subject fence-10"
    drill.run(f"lamplighter drop {subject} --for 6s --by anna")
    time.sleep(1)
    drill.run("lamplighter emit fence-10")
    time.sleep(6)
    drill.run(f"lamplighter explain --subject fence-10 {drill.urls()}")
    drill.run(f"lamplighter resume {subject} --by anna")
    drill.run(f"lamplighter drop {subject} --by anna")
    drill.run(f"lamplighter resume {subject} --by anna")
    show("(a limit)")
    drill.run("lamplighter limit --class control --rate 5/s --by anna")
    time.sleep(12)
    drill.run("lamplighter restrictions")
    drill.status()
    drill.run("lamplighter resume --all --by anna")
    time.sleep(12)
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
    drill.run(f"lamplighter status {drill.urls()}")


def mixed_fleet(drill):
    """Replaces workers of an older version one by one, and one of the new version by an older one."""
    old = os.environ.get("OLD_LAMPLIGHTER")
    if not old:
        show("(left out: OLD_LAMPLIGHTER names no program)")
        return
    replace(drill, "worker-1", old)
    replace(drill, "worker-2", old)
    drill.register("fence-11", "00fc13b1", "6F21")
    show("(the new version, while the topic that it needs is missing)")
    drill.tell_kafka("topicerr lamplighter.restrictions 3")
    drill.run("lamplighter check")
    drill.run("lamplighter run")
    drill.tell_kafka("topicerr lamplighter.restrictions 0")
    for name in ("worker-1", "worker-2"):
        replace(drill, name, "lamplighter")
        drill.log("complete|assigned", 20, name)
        drill.run(f"lamplighter status {drill.urls()}")
        for partition in range(4):
            drill.changed("fence-11", partition)
        time.sleep(5)
    drill.run(f"lamplighter explain --subject fence-11 {drill.urls()}")
    show("(back to the older version, first with a key that it does not know)")
    drill.configuration.write_text(drill.configuration.read_text().replace(
        "    registrations:", "    restrictions: lamplighter.restrictions\n    registrations:"))
    try:
        told = subprocess.run([old, "run", "--config", drill.configuration], capture_output=True, text=True,
                              timeout=20, check=False, env=ENVIRONMENT)
        show(f"{told.stdout}{told.stderr}(exit code {told.returncode})")
    except subprocess.TimeoutExpired:
        show("(it has started, so it knows the key)")
    drill.write()
    replace(drill, "worker-2", old)
    drill.log("complete|assigned", 20, "worker-2")
    drill.run(f"lamplighter status {drill.urls()}")
    replace(drill, "worker-2", "lamplighter")


def replace(drill, name, program):
    """Stops a worker in order, and starts another one in its place."""
    show(f"({name}: exit code {drill.stop(name)}; now {program})")
    drill.worker(name, program=program)


def more_partitions_of_registrations(drill):
    """Copies them into a topic with more partitions, and starts the workers with that."""
    bootstrap = drill.values["bootstrap"]
    drill.register_lines("gutter-7", "00fc13af", "6F1F")
    drill.stop("traffic")
    drill.status()
    for name in ("worker-1", "worker-2"):
        drill.stop(name)
    copy(drill, bootstrap, "lamplighter.registrations", bootstrap, "lamplighter.registrations-2")
    drill.write(registrations="lamplighter.registrations-2")
    drill.mark()
    for name in ("worker-1", "worker-2"):
        drill.worker(name)
    drill.log("the index is complete", 20)
    drill.run("lamplighter check")
    drill.start_traffic()
    drill.run("lamplighter emit gutter-7")
    time.sleep(3)
    drill.run(f"lamplighter explain --subject gutter-7 {drill.urls()}")
    drill.write(registrations="lamplighter.registrations")


def copy(drill, here, topic, there, other):
    # The separator occurs in no JSON; line ends do.
    form = '-D "\\x1e" -K "\\t"'
    drill.run(f"sh -c 'kcat -C -e -q -b {here} -t {topic} {form} > {drill.folder}/{topic}.records'")
    drill.run(f"sh -c 'tr -cd \"\\036\" < {drill.folder}/{topic}.records | wc -c'")
    drill.run(f"sh -c 'kcat -P -Z -b {there} -t {other} -X partitioner=murmur2_random "
              f"-X enable.idempotence=true {form} < {drill.folder}/{topic}.records'")  # fmt: skip


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
    """Copies registrations and suppressions into another Kafka, as MirrorMaker would, and fails over."""
    other = drill.kafka("kafka-2")
    here = drill.values["bootstrap"]
    for topic in ("lamplighter.registrations", "lamplighter.suppressions"):
        copy(drill, here, topic, other, topic)
    for name in ("traffic", "worker-1", "worker-2"):
        if name in drill.running:
            drill.stop(name)
    drill.write(bootstrap=other)
    drill.worker("worker-3")
    drill.log("the index is complete|assigned", 20, "worker-3")
    drill.run("lamplighter emit gutter-7")
    time.sleep(3)
    port = drill.port_in("worker-3.log", "for requests of operators")
    drill.run(f"lamplighter explain --subject gutter-7 http://127.0.0.1:{port}")
    drill.run("lamplighter suppressions list")
    drill.write(bootstrap=here)
    drill.stop("worker-3")


PROCEDURES = [healthy, bad_record, crash_in_a_record, dead_letters, key_rotation, adding_an_app,
              forgetting_a_person, wrong_environment, apns_down, kafka_down, stopping_pushes, topic_lost, upgrade,
              mixed_fleet, more_partitions_of_registrations, changing_the_group, second_cluster]  # fmt: skip


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
