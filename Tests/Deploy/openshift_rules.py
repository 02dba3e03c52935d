# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What OpenShift's SecurityContextConstraints `restricted-v2` demand of a pod, by their definition in
openshift/cluster-kube-apiserver-operator. Users and groups are its namespace's, so a pod names none."""

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
CHOSEN = {"runAsUser", "runAsGroup", "fsGroup", "seLinuxOptions"}
SECCOMP = ({"type": "RuntimeDefault"}, None)


def complaints(spec):
    """What is wrong with a pod's spec."""
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            yield f"the pod has {name}"
    for volume in spec.get("volumes", []):
        for kind in volume.keys() - {"name"} - VOLUMES:
            yield f"volume {volume['name']} is a {kind}"
    yield from identity("the pod", spec.get("securityContext", {}))
    for container in spec["containers"] + spec.get("initContainers", []):
        security = container.get("securityContext", {})
        name = f"container {container['name']}"
        yield from identity(name, security)
        if security.get("privileged"):
            yield f"{name} is privileged"
        # It is set to false where it is left out; `true` is refused.
        if security.get("allowPrivilegeEscalation"):
            yield f"{name} may escalate its privileges"
        capabilities = security.get("capabilities", {})
        if not set(capabilities.get("add", [])) <= {"NET_BIND_SERVICE"}:
            yield f"{name} adds capabilities"
        # Pod Security's `restricted`, which its namespaces are held to as well, wants it said.
        if capabilities.get("drop") != ["ALL"]:
            yield f"{name} keeps capabilities"
        for port in container.get("ports", []):
            if "hostPort" in port:
                yield f"{name} has the node's port {port['hostPort']}"


def identity(name, security):
    """What is chosen for the pod, and must not be chosen by it."""
    for each in sorted(CHOSEN & security.keys()):
        yield f"{name} has {each}"
    if security.get("seccompProfile") not in SECCOMP:
        yield f"{name} has another seccomp profile"
