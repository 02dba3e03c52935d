# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What must hold of the registrars beside what holds of every pod. Each rule yields what is wrong, and
nothing where there are no registrars."""

import re

# Writes under way are waited for, and the group is left: RegistrarLoop.stopTimeout, its consumer's close.
STOP_SECONDS = 10 + 5
ADVERTISED = "LAMPLIGHTER_REGISTRAR_ADVERTISEDURL"
NAMES = "$(POD_NAME).lamplighter-registrar-pods.$(POD_NAMESPACE).svc"
FIELDS = {"POD_IP": "status.podIP", "POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}


def apart(rendering):
    """What selects workers selects no registrar, and the other way round."""
    if not rendering.registrar:
        return
    for one, other in ((rendering, rendering.registrar), (rendering.registrar, rendering)):
        labels = other.pod["metadata"]["labels"]
        found = {
            one.workload["kind"]: one.workload["spec"]["selector"]["matchLabels"],
            "Service": one.own("Service")["spec"]["selector"],
            "PodDisruptionBudget": one.own("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
            "NetworkPolicy": one.own("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        }
        for kind, selector in found.items():
            if selector.items() <= labels.items():
                yield f"{kind} {one.name} selects the pods of {other.name}"
        for monitor in one.named("ServiceMonitor", one.name):
            selector = monitor["spec"]["selector"]["matchLabels"]
            if selector.items() <= other.own("Service")["metadata"]["labels"].items():
                yield f"ServiceMonitor {one.name} selects the Service of {other.name}"


def reached(rendering):
    """Each replica tells the others an address of its own, at the port where it listens."""
    if not rendering.registrar:
        return
    registrar = rendering.registrar
    settings = registrar.configuration["registrar"]
    if settings["host"] not in ("0.0.0.0", "::"):
        yield "registrar.host is not reached from outside the pod"
    ports = {each["name"]: each["containerPort"] for each in registrar.container["ports"]}
    targets = {each["name"]: each["targetPort"] for each in registrar.own("Service")["spec"]["ports"]}
    if ports.get(targets.get("registrations")) != settings["port"]:
        yield "the Service does not lead to registrar.port"
    variables = {each["name"]: each for each in registrar.container.get("env", [])}
    url = variables.get(ADVERTISED, {}).get("value", "")
    host = NAMES if registrar.workload["kind"] == "StatefulSet" else "$(POD_IP)"
    scheme = "https" if settings.get("tls") else "http"
    if url != f"{scheme}://{host}:{settings['port']}":
        yield f"{ADVERTISED} is {url}"
    before = list(variables)[:list(variables).index(ADVERTISED)] if url else []
    for name in re.findall(r"\$\((\w+)\)", url):
        # Kubernetes puts in only variables that stand before.
        field = variables.get(name, {}).get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        if name not in before or field != FIELDS[name]:
            yield f"{name} is not known where {ADVERTISED} needs it"


def stop(rendering):
    if not rendering.registrar:
        return
    pod = rendering.registrar.pod["spec"]
    command = rendering.registrar.container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
    if not command or command[0] != "sleep":
        yield "a registrar stops while it is still sent requests"
        return
    if pod.get("terminationGracePeriodSeconds", 30) < int(command[1]) + STOP_SECONDS + 5:
        yield "the grace period of a registrar is shorter than its stop"


def files(rendering):
    """The files that the configuration names are those of Secrets, read-only."""
    if not rendering.registrar:
        return
    registrar = rendering.registrar
    volumes = {each["name"] for each in registrar.pod["spec"]["volumes"] if "secret" in each}
    folders = [each["mountPath"] for each in registrar.container["volumeMounts"]
               if each["name"] in volumes and each.get("readOnly") is True]
    settings = registrar.configuration["registrar"]
    named = [settings.get("peerTokenFile"), settings["auth"].get("serviceKeysFile"),
             *settings.get("tls", {}).values()]
    for name in filter(None, named):
        if not any(name.startswith(f"{folder}/") for folder in folders):
            yield f"{name} is no file of a Secret"


def network(rendering):
    if not rendering.registrar:
        return
    registrar = rendering.registrar
    policy = registrar.own("NetworkPolicy")["spec"]
    others = {"podSelector": policy["podSelector"]}
    if policy.get("policyTypes") != ["Ingress", "Egress"]:
        yield "NetworkPolicy of registrars: not for both directions"
    admitted = {}
    for rule in policy["ingress"]:
        ports = [each["port"] for each in rule.get("ports", [])]
        if not rule.get("from") or ports not in (["registrations"], ["health"]):
            yield "NetworkPolicy of registrars: everybody is let in, or to another port"
        admitted[ports[0] if ports else ""] = rule.get("from", [])
    if others not in admitted.get("registrations", []):
        yield "NetworkPolicy of registrars: they do not reach each other"
    if others in admitted.get("health", []) or any("podSelector" in each for each in admitted.get("health", [])):
        yield "NetworkPolicy of registrars: somebody else than Prometheus asks for metrics"
    allowed = [({each["port"] for each in rule.get("ports", [])}, rule.get("to", []))
               for rule in policy["egress"]]
    broker = int(registrar.kafka["bootstrap"].split(",")[0].rsplit(":", 1)[1])
    for what, port in (("DNS", 53), ("Kafka", broker)):
        if not any(ports == {port} for ports, _ in allowed):
            yield f"NetworkPolicy of registrars: {what} is not reached at {port}"
    if ({registrar.configuration["registrar"]["port"]}, [others]) not in allowed:
        yield "NetworkPolicy of registrars: they may not ask each other"
    if any(not ports for ports, _ in allowed):
        yield "NetworkPolicy of registrars: every port is reached"


ALL = (apart, reached, stop, files, network)
