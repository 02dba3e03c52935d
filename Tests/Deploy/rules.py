# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What must hold of the objects of one rendering. Each rule yields what is wrong."""

import functools
import json
import pathlib
import re

import jsonschema
import kubernetes_validate
import yaml

import kafka_rules
import registrar_rules

HERE = pathlib.Path(__file__).resolve().parent
# The oldest that is promised (a sidecar of the try-out needs it), and the newest with schemas.
VERSIONS = ("1.29", "1.37")
WORKLOADS = ("Deployment", "StatefulSet")
UNITS = {"s": 1, "m": 60}


class Component:
    """The objects, and those of one component: the workers, or the registrars."""

    def __init__(self, objects, name, container):
        self.objects = objects
        self.name = name
        self.workload = next(
            each for each in objects if each["kind"] in WORKLOADS and each["metadata"]["name"] == name)
        self.pod = self.workload["spec"]["template"]
        self.container = next(
            each for each in self.pod["spec"]["containers"] if each["name"] == container)
        volume = next(each for each in self.pod["spec"]["volumes"] if each["name"] == "config")
        # Kustomize puts a hash behind the name.
        [self.text] = self.named("ConfigMap", volume["configMap"]["name"])[0]["data"].values()
        self.configuration = yaml.safe_load(self.text)
        self.kafka = self.configuration["kafka"]

    def of(self, kind):
        return [each for each in self.objects if each["kind"] == kind]

    def named(self, kind, name):
        return [each for each in self.of(kind) if each["metadata"]["name"] == name]

    def own(self, kind):
        """The one of its kind that has the component's name."""
        return self.named(kind, self.name)[0]


class Rendering(Component):
    """The objects, and those that most rules ask for."""

    def __init__(self, objects):
        super().__init__(objects, "lamplighter", "worker")
        self.worker = self.container
        self.events = list(self.kafka.get("events", {"lamplighter.events": {}}))
        self.registrar = None
        if any(each["metadata"]["name"] == "lamplighter-registrar" for each in self.of("ServiceAccount")):
            self.registrar = Component(objects, "lamplighter-registrar", "registrar")


def complaints(objects):
    rendering = Rendering(objects)
    rules = (schemas, drain, network, credentials, alerts, *kafka_rules.ALL, *registrar_rules.ALL)
    of_each = (references, hardening, rollout, probes, secrets)
    components = [each for each in (rendering, rendering.registrar) if each]
    return [complaint for rule in rules for complaint in rule(rendering)] + [
        f"{component.name}: {complaint}" for component in components for rule in of_each
        for complaint in rule(component)]


def closed(schema):
    """The schema with every object that has properties closed to others."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict):
        result = {"type": "object", "additionalProperties": False, **result}
    return result


CUSTOM = closed(yaml.safe_load((HERE / "custom_resources.yaml").read_text()))


def schemas(rendering):
    """Kubernetes's own schemas, without unknown fields; of custom resources those that are here."""
    for each in rendering.objects:
        problem = schema_problem(json.dumps(each, sort_keys=True))
        if problem:
            yield f"{each['kind']} {each['metadata']['name']}: {problem}"


# Most objects of a rendering are those of the last one.
@functools.cache
def schema_problem(text):
    """What the schemas have against an object, which is given as JSON."""
    each = json.loads(text)
    kind = f"{each['apiVersion']} {each['kind']}"
    try:
        if kind in CUSTOM:
            properties = {"metadata": {"$ref": "#/$defs/metadata"}, "spec": CUSTOM[kind]}
            jsonschema.validate(
                {key: each[key] for key in properties},
                {"$defs": CUSTOM["$defs"], "properties": properties})
        else:
            for version in VERSIONS:
                kubernetes_validate.validate(each, version, strict=True)
    except jsonschema.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError as error:
        return error.message
    return None


def references(rendering):
    """Whatever an object of a component names is there."""
    pod, labels = rendering.pod["spec"], rendering.pod["metadata"]["labels"]
    for volume in pod["volumes"]:
        name = volume.get("configMap", {}).get("name")
        if name and not rendering.named("ConfigMap", name):
            yield f"volume {volume['name']}: no ConfigMap {name}"
    claims = rendering.workload["spec"].get("volumeClaimTemplates", [])
    volumes = {each["name"] for each in pod["volumes"]} | {each["metadata"]["name"] for each in claims}
    for container in pod["containers"] + pod.get("initContainers", []):
        for mount in container["volumeMounts"]:
            if mount["name"] not in volumes:
                yield f"container {container['name']}: no volume {mount['name']}"
    if not rendering.named("ServiceAccount", pod["serviceAccountName"]):
        yield f"no ServiceAccount {pod['serviceAccountName']}"
    service = rendering.own("Service")
    apart = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selectors = {
        "the workload": rendering.workload["spec"]["selector"],
        "Service": {"matchLabels": service["spec"]["selector"]},
        "PodDisruptionBudget": rendering.own("PodDisruptionBudget")["spec"]["selector"],
        "NetworkPolicy": rendering.own("NetworkPolicy")["spec"]["podSelector"],
        "anti-affinity": apart[0]["podAffinityTerm"]["labelSelector"],
        "topology spread": pod["topologySpreadConstraints"][0]["labelSelector"],
    }
    for name, selector in selectors.items():
        if not selector["matchLabels"].items() <= labels.items():
            yield f"{name} does not select the pods"
    for monitor in rendering.named("ServiceMonitor", rendering.name):
        selector = monitor["spec"]["selector"]["matchLabels"]
        if not selector.items() <= service["metadata"]["labels"].items():
            yield "ServiceMonitor does not select the Service"
        ports = {port["name"] for port in service["spec"]["ports"]}
        if not {each["port"] for each in monitor["spec"]["endpoints"]} <= ports:
            yield "ServiceMonitor names no port of the Service"
    if rendering.workload["kind"] == "StatefulSet" \
            and not rendering.named("Service", rendering.workload["spec"]["serviceName"]):
        yield "StatefulSet: no such Service"


def hardening(rendering):
    pod = rendering.pod["spec"]
    security = pod["securityContext"]
    if not (security.get("runAsNonRoot") and security.get("runAsUser") == 10001
            and security.get("fsGroup") == 10001):
        yield "the pod may run as root, or as a user who cannot read the keys"
    if security.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "the pod has no seccomp profile"
    if pod.get("automountServiceAccountToken") is not False:
        yield "the pod gets a token of Kubernetes"
    if pod.get("enableServiceLinks") is not False:
        yield "links of a Service may be unknown keys of the configuration"
    for container in pod["containers"] + pod.get("initContainers", []):
        security = container.get("securityContext", {})
        if not (security.get("readOnlyRootFilesystem") is True
                and security.get("allowPrivilegeEscalation") is False
                and security.get("capabilities") == {"drop": ["ALL"]}):
            yield f"container {container['name']} has rights that it does not need"
        if not re.fullmatch(r"[^:]+:\d+\.\d+\.\d+", container["image"]):
            yield f"container {container['name']} has no exact version"
    if not {"cpu", "memory"} <= rendering.container["resources"]["requests"].keys():
        yield "it has no requests"
    if "memory" not in rendering.container["resources"]["limits"]:
        yield "it may take all memory of its node"


def rollout(rendering):
    workload = rendering.workload["spec"]
    if rendering.workload["kind"] == "Deployment":
        strategy = workload.get("strategy", {}).get("rollingUpdate")
        if strategy != {"maxUnavailable": 0, "maxSurge": 1}:
            yield "a rollout may take pods away before others have joined, or two at once"
    if rendering.workload["kind"] == "StatefulSet":
        if workload.get("podManagementPolicy") != "Parallel":
            yield "pods start one after the other"
        if workload.get("updateStrategy", {}).get("type", "RollingUpdate") != "RollingUpdate":
            yield "an update replaces no pod"
    # A rebalance: two to three seconds.
    if workload.get("minReadySeconds", 0) < 5:
        yield "the next pod is replaced while the group still rebalances"
    budget = rendering.own("PodDisruptionBudget")["spec"]
    if budget.get("maxUnavailable") != 1:
        yield "PodDisruptionBudget: more than one pod may be evicted at a time, or none"


def drain(rendering):
    """What only workers have: static membership, a copy of the index, and the time that they take to stop."""
    variable = "LAMPLIGHTER_KAFKA_GROUPINSTANCEID"
    names = {each["name"]: each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
             for each in rendering.worker.get("env", [])}
    wanted = "metadata.name" if rendering.workload["kind"] == "StatefulSet" else None
    if names.get(variable) != wanted:
        yield f"{variable} must be the pod's name in a StatefulSet, and is nothing in a Deployment"
    directory = rendering.configuration.get("index", {}).get("snapshotDirectory", "/")
    for mount in rendering.worker["volumeMounts"]:
        limited = any(each["name"] == mount["name"] and "sizeLimit" in each.get("emptyDir", {})
                      for each in rendering.pod["spec"]["volumes"])
        if limited and f"{directory}/".startswith(f"{mount['mountPath']}/"):
            yield f"volume {mount['name']}: a copy of the index outgrows it, and the pod is evicted"
    if rendering.workload["spec"].get("volumeClaimTemplates") \
            and rendering.pod["spec"]["securityContext"].get("fsGroupChangePolicy") != "OnRootMismatch":
        yield "the kubelet lets the group write the copy of the index, which is not read then"
    text = rendering.configuration.get("delivery", {}).get("shutdownTimeout", "25s")
    drain = int(text[:-1]) * UNITS[text[-1]]
    if rendering.pod["spec"].get("terminationGracePeriodSeconds", 30) < drain + 5:
        yield f"the grace period is not longer than delivery.shutdownTimeout, {text}"


def probes(rendering):
    health = rendering.configuration["health"]
    ports = {each["name"]: each["containerPort"] for each in rendering.container["ports"]}
    if health["host"] not in ("0.0.0.0", "::"):
        yield "health.host is not reached from outside the pod"
    for name, path in (("startup", "/startupz"), ("readiness", "/readyz"), ("liveness", "/livez")):
        probe = rendering.container.get(f"{name}Probe", {}).get("httpGet", {})
        if probe.get("path") != path or ports.get(probe.get("port")) != health["port"]:
            yield f"the {name} probe does not ask for {path} at health.port"
    startup = rendering.container["startupProbe"]
    if startup["periodSeconds"] * startup["failureThreshold"] < 600:
        yield "the startup probe gives up before ten minutes, docs/operations.md's longest replay"


def network(rendering):
    policy = rendering.own("NetworkPolicy")["spec"]
    if policy.get("policyTypes") != ["Ingress", "Egress"]:
        yield "NetworkPolicy: not for both directions"
    admin = rendering.configuration.get("admin", {})
    if admin.get("host", "127.0.0.1") != "127.0.0.1":
        yield "admin.host is reached from outside the pod"
    for rule in policy.get("ingress", []):
        if not rule.get("from") or [each["port"] for each in rule.get("ports", [])] != ["health"]:
            yield "NetworkPolicy: somebody else than Prometheus is let in, or to another port"
    broker = int(rendering.kafka["bootstrap"].split(",")[0].rsplit(":", 1)[1])
    allowed = [{each["port"] for each in rule.get("ports", [])} for rule in policy["egress"]]
    for what, ports in (("DNS", {53}), ("Kafka", {broker}), ("APNs", {443, 2197})):
        if ports not in allowed:
            yield f"NetworkPolicy: {what} is not reached at {sorted(ports)}"
    if any(not ports for ports in allowed):
        yield "NetworkPolicy: every port is reached"
    for rule, ports in zip(policy["egress"], allowed):
        if 443 in ports and not rule.get("to"):
            yield "NetworkPolicy: every address is reached at 443"


def secrets(rendering):
    """Secrets are files that only the pod's group reads, never variables with their text."""
    if rendering.of("Secret"):
        yield "a Secret is among the manifests"
    for volume in rendering.pod["spec"]["volumes"]:
        if "secret" in volume and volume["secret"].get("defaultMode") != 0o400:
            yield f"volume {volume['name']}: its mode is not 0400"
    for variable in rendering.container.get("env", []):
        if "value" in variable and re.search("KEY|PASSWORD|SECRET|TOKEN", variable["name"]):
            yield f"variable {variable['name']} has a secret's text"


def credentials(rendering):
    credentials = rendering.configuration["apns"]["credentials"].values()
    mounts = {each["mountPath"] for each in rendering.worker["volumeMounts"]}
    if not {each["keyFolder"] for each in credentials} <= mounts:
        yield "apns.credentials: no volume is mounted at keyFolder"


def alerts(rendering):
    """Each alert links to its part of the runbook, at an address that a browser opens."""
    for each in rendering.of("PrometheusRule"):
        for rule in (rule for group in each["spec"]["groups"] for rule in group["rules"] if "alert" in rule):
            address, _, part = rule.get("annotations", {}).get("runbook_url", "").partition("#")
            if not re.fullmatch(r"https?://[\w.-]+(:\d+)?/\S*", address) or part != rule["alert"].lower():
                yield f"PrometheusRule: {rule['alert']} links to {address}#{part}"
