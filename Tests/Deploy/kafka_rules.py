# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What must hold of what KEDA and Strimzi are told of Kafka. Each rule yields what is wrong."""

import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def scaling(rendering):
    partitions = {
        each["spec"]["topicName"]: each["spec"]["partitions"]
        for each in rendering.of("KafkaTopic")}
    for scaled in rendering.of("ScaledObject"):
        spec = scaled["spec"]
        target = spec["scaleTargetRef"]
        kind = target.get("kind", "Deployment")
        if not rendering.named(kind, target["name"]):
            yield f"ScaledObject: no such {kind}"
        if "replicas" in rendering.workload["spec"]:
            yield f"ScaledObject: the {kind} sets the number of replicas too"
        asking = [each for each in spec["triggers"] if each["type"] == "kafka"]
        named = sorted(str(each["metadata"].get("topic")) for each in asking)
        if named != sorted(rendering.events):
            yield f"ScaledObject: scales on {named}, and the events topics are {rendering.events}"
        ceiling = max((partitions.get(each, 0) for each in rendering.events), default=0)
        if spec["maxReplicaCount"] > ceiling:
            yield f"ScaledObject: {spec['maxReplicaCount']} workers for {ceiling} partitions"
        if spec["minReplicaCount"] < 2:
            yield "ScaledObject: one worker cannot fail"
        advanced = spec.get("advanced", {}).get("horizontalPodAutoscalerConfig", {})
        behavior = advanced.get("behavior", {})
        for way, least in (("scaleUp", 30), ("scaleDown", 300)):
            if behavior.get(way, {}).get("stabilizationWindowSeconds", 0) < least:
                yield f"ScaledObject: {way} has no cool-down"
        yield from ages(rendering, [each for each in spec["triggers"] if each not in asking])
        for trigger in asking:
            data = trigger["metadata"]
            if data["bootstrapServers"] != rendering.kafka["bootstrap"] \
                    or data["consumerGroup"] != rendering.kafka["group"]:
                yield "ScaledObject: asks another Kafka or another group"
            reference = trigger.get("authenticationRef", {}).get("name")
            if reference and not rendering.named("TriggerAuthentication", reference):
                yield f"ScaledObject: no TriggerAuthentication {reference}"


def ages(rendering, triggers):
    """The triggers that ask Prometheus for the age of the oldest push."""
    metrics = set(re.findall(r"^\| `(lamplighter_\w+)`", (DOCS / "metrics.md").read_text(), re.MULTILINE))
    config = rendering.configuration.get("delivery", {})
    for trigger in triggers:
        query = trigger["metadata"]["query"]
        for name, labels in re.findall(r"(lamplighter_\w+)\{([^}]*)\}", query):
            if name not in metrics:
                yield f"ScaledObject: there is no metric {name}"
            if f'job="{rendering.name}"' not in labels:
                yield f"ScaledObject: asks for other workers: {labels}"
        # By the average it would ask for a number of workers, whatever number there is.
        if trigger.get("metricType") != "Value":
            yield f"ScaledObject: scales by {trigger.get('metricType', 'AverageValue')} of an age"
        held = int(str(config.get("holdMax", "10s")).removesuffix("s"))
        if int(trigger["metadata"]["threshold"]) < held + 5:
            yield "ScaledObject: pushes are as old as that in good health"


def topics(rendering):
    """The settings of docs/kafka.md, three replicas of which two are in sync."""
    found = rendering.of("KafkaTopic")
    if not found:
        return
    table = re.findall(r"^\| `(lamplighter\.[a-z-]+)`[^|]*\| (compact|delete) \| (.*)\|$",
                       (DOCS / "kafka.md").read_text(), re.MULTILINE)
    wanted = {}
    for topic, policy, besides in table:
        config = {"cleanup.policy": policy, "min.insync.replicas": 2}
        if "LogAppendTime" in besides:
            config["message.timestamp.type"] = "LogAppendTime"
        if "delete.retention.ms` of two days" in besides:
            config["delete.retention.ms"] = 172800000
        if "min.compaction.lag.ms` of an hour" in besides:
            config["min.compaction.lag.ms"] = 3600000
        wanted[topic] = config
    for topic in rendering.events:
        wanted.setdefault(topic, wanted["lamplighter.events"])
    actual = {each["spec"]["topicName"]: each["spec"]["config"] for each in found}
    for topic in sorted(wanted.keys() | actual.keys()):
        if wanted.get(topic) != actual.get(topic):
            yield (f"KafkaTopic {topic}: {actual.get(topic)}, "
                   f"and docs/kafka.md has {wanted.get(topic)}")
    if any(each["spec"]["replicas"] < 3 for each in found):
        yield "KafkaTopic: fewer than three replicas"


def rights(rendering):
    """The worker's are those of the rules in docs/kafka.md, and every other user has fewer."""
    users = {each["metadata"]["name"]: granted(each) for each in rendering.of("KafkaUser")}
    if not users:
        return
    worker = users.pop("lamplighter", set())
    for missing in sorted(documented() - worker):
        yield f"KafkaUser lamplighter: lacks {missing}"
    for extra in sorted(worker - documented()):
        yield f"KafkaUser lamplighter: has {extra}, which docs/kafka.md does not"
    expected = {
        "producer": {("topic", topic, "Write") for topic in rendering.events},
        "registrar": {
            *(("topic", "lamplighter.registrations", each) for each in ("Read", "Write", "DescribeConfigs")),
            ("group", "lamplighter-registrar", "Read")},
        "operations": {
            ("topic", f"lamplighter.{topic}", operation) for topic, operations in (
                ("registrations", ("Read", "Write")), ("suppressions", ("Read", "Write")),
                ("dead-letters", ("Read",)), ("deferred", ("Read", "Write")),
                ("restrictions", ("Read", "Write"))) for operation in operations}
        # A redrive writes again what could not be read.
        | {("topic", topic, "Write") for topic in rendering.events},
        "scaler": {("group", "lamplighter", "Describe")}
        | {("topic", topic, "Describe") for topic in rendering.events},
    }
    for role, wanted in expected.items():
        if users.get(f"lamplighter-{role}") != wanted:
            yield f"KafkaUser lamplighter-{role}: not the least rights of its role"


def granted(user):
    return {(rule["resource"]["type"], rule["resource"]["name"], operation)
            for rule in user["spec"]["authorization"]["acls"] for operation in rule["operations"]}


def documented():
    """The rights that the commands of docs/kafka.md give."""
    result = set()
    text = (DOCS / "kafka.md").read_text()
    text = re.search(r"^acl\(\).*?^```", text, re.DOTALL | re.MULTILINE).group()
    for names, body in re.findall(r"for topic in ([^;]+); do\n(.*?)done", text, re.DOTALL):
        for name in names.split():
            result |= operations(body.replace("$topic", name))
    return result | operations(re.sub(r"for topic in.*?done", "", text, flags=re.DOTALL))


def operations(text):
    return {(kind, name, operation)
            for line in text.splitlines()
            for kind, name in re.findall(r'--(topic|group) "?([\w.-]+)"?', line)
            for operation in re.findall(r"--operation (\w+)", line)}


ALL = (scaling, topics, rights)
