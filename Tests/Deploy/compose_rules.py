# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What deploy/compose.yaml and the files that it mounts must keep to."""

import importlib.util
import json
import pathlib
import re

import jsonschema
import yaml
from registrar_rules import STOP_SECONDS

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy/compose.yaml"
# Whose ports may be published, on loopback.
PUBLISHED = {"registrar", "worker", "prometheus", "grafana"}
OWN_IMAGES = ("lamplighter:", "lamplighter-lab:")
USER = "10001:10001"
# The one service that needs root, with the capability that it needs it for.
ROOT_SERVICES = {"prepare": ["CHOWN"]}
DURATION = re.compile(r"(\d+)(ms|s|m|h)")
SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def schema():
    """The Compose specification's schema, which the package check-jsonschema has."""
    package = pathlib.Path(importlib.util.find_spec("check_jsonschema").origin).parent
    return json.loads((package / "builtin_schemas/vendor/compose-spec.json").read_text())


def seconds(text):
    return sum(int(number) * SECONDS[unit] for number, unit in DURATION.findall(text))


def configuration_keys():
    """Patterns of the configuration keys of docs/configuration.md."""
    page = (ROOT / "docs/configuration.md").read_text()
    keys = re.findall(r"^\| `([\w.<>]+)`", page, re.MULTILINE)
    return [re.compile(r"[^.]+".join(re.escape(part) for part in re.split(r"<\w+>", key))) for key in keys]


def leaves(value, path=""):
    """The keys of a configuration that have a value, joined by dots."""
    if not isinstance(value, dict):
        return [path]
    return [leaf for key, each in value.items() for leaf in leaves(each, f"{path}.{key}".lstrip("."))]


class Compose:
    """A compose file, and the folder that its paths are relative to."""

    def __init__(self, text, folder=FILE.parent):
        self.document = yaml.safe_load(text)
        self.folder = folder
        self.services = self.document["services"]

    def mounts(self, name):
        """The volumes of a service: source, target, whether it is read-only."""
        for volume in self.services[name].get("volumes", []):
            source, target, *options = volume.split(":")
            yield source, target, options == ["ro"]

    def files(self, name):
        """The files that a service mounts, by their path in the container."""
        return {target: self.folder / source for source, target, _ in self.mounts(name)
                if source.startswith(".")}

    def text(self, name, path):
        """A file as a service sees it."""
        return self.files(name)[path].read_text()

    def configuration(self, name="worker"):
        """The configuration that the command of a service names."""
        path = next(each for each in self.services[name]["command"] if each.startswith("--config="))
        return yaml.safe_load(self.text(name, path.removeprefix("--config=")))

    def options(self, name):
        """The command of a service: its options, those that are given twice with their last value."""
        options = [each for each in self.services[name]["command"] if each.startswith("--")]
        return dict(each[2:].split("=", 1) for each in options)

    def predecessors(self, name):
        """The services that have started, or ended, before a service."""
        found = set(self.services[name].get("depends_on", {}))
        return found.union(*(self.predecessors(each) for each in found if each in self.services))


def complaints(compose):
    """What is wrong with a compose file and what it mounts."""
    found = [f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
             for error in jsonschema.Draft202012Validator(schema()).iter_errors(compose.document)]
    # The fields that docker-compose 1.29 does not know, or would pass over.
    found += [f"docker-compose 1.29 has no {key}" for key in ("name", "configs", "include")
              if key in compose.document]
    for name, service in compose.services.items():
        for check in (rights_of, ports_of, volumes_of, order_of, image_of):
            found += [f"{name}: {each}" for each in check(compose, name, service)]
    return [*found, *worker_of(compose), *registrar_of(compose), *simulator_of(compose)]


def rights_of(compose, name, service):
    if service.get("read_only") is not True:
        yield "its root is writable"
    if service.get("cap_drop") != ["ALL"]:
        yield "keeps capabilities"
    if service.get("cap_add", []) != ROOT_SERVICES.get(name, []):
        yield "has a capability that it does not need"
    if service.get("security_opt") != ["no-new-privileges:true"]:
        yield "may gain privileges"
    if "mem_limit" not in service:
        yield "its memory has no limit"
    for key in {"privileged", "network_mode", "pid", "ipc", "devices"} & set(service):
        yield f"has {key}"
    if service["image"].startswith(OWN_IMAGES):
        expected = "0:0" if name in ROOT_SERVICES else USER
        if service.get("user") != expected:
            yield f"runs as {service.get('user')}, not as {expected}"


def ports_of(compose, name, service):
    for port in service.get("ports", []):
        if not re.fullmatch(r"127\.0\.0\.1:[\d-]+:\d+", str(port)):
            yield f"publishes {port} beyond loopback"
        if name not in PUBLISHED:
            yield f"publishes {port}"


def volumes_of(compose, name, service):
    for source, target, is_read_only in compose.mounts(name):
        if source.startswith("."):
            if not (compose.folder / source).is_file():
                yield f"mounts {source}, which is no file"
            if not is_read_only:
                yield f"may write to {source}"
        elif source not in compose.document["volumes"]:
            yield f"mounts {source}, which is no volume"


def order_of(compose, name, service):
    for other, how in service.get("depends_on", {}).items():
        before = compose.services.get(other)
        if before is None:
            yield f"depends on {other}, which is no service"
        elif how["condition"] == "service_healthy" and "healthcheck" not in before:
            yield f"waits for the health of {other}, which has no check"
        elif how["condition"] == "service_completed_successfully" and "restart" in before:
            yield f"waits for the end of {other}, which is started again"


def image_of(compose, name, service):
    version = service["image"].partition(":")[2]
    if not re.search(r"\d+\.\d+\.\d+", version):
        yield f"the image {service['image']} has no exact version"
    if not service["image"].startswith(OWN_IMAGES):
        return
    source = (ROOT / "Sources/App/Entrypoint/Version.swift").read_text()
    if f'"{version}"' not in source:
        yield f"{service['image']} is not this version"
    build = service.get("build")
    if build is None:
        builders = {each for each, one in compose.services.items()
                    if one["image"] == service["image"] and "build" in one}
        if not builders & compose.predecessors(name):
            yield f"{service['image']} is not built before"
        return
    dockerfile = compose.folder / build["context"] / build["dockerfile"]
    if f" AS {build['target']}\n" not in dockerfile.read_text():
        yield f"{build['dockerfile']} has no stage {build['target']}"


def worker_of(compose):
    worker, configuration = compose.services["worker"], compose.configuration()
    known = configuration_keys()
    for key in leaves(configuration):
        if not any(pattern.fullmatch(key) for pattern in known):
            yield f"worker: {key} is no configuration key"
    # The configuration is the registrar's too, whose members have no names.
    variables = dict(worker.get("environment", {}))
    if variables.pop("LAMPLIGHTER_KAFKA_GROUPINSTANCEID", None) != "auto" or "hostname" in worker:
        yield "worker: all replicas have one name in their group, or none"
    for variable in variables:
        yield f"worker: {variable} belongs into the configuration file"
    if str(worker["mem_limit"]) != kubernetes_memory():
        yield "worker: its memory is not that of docs/kubernetes.md"
    least = seconds(configuration["delivery"]["shutdownTimeout"]) + 10
    yield from program_of(compose, "worker", "admin", least)


def registrar_of(compose):
    for variable in compose.services["registrar"].get("environment", {}):
        yield f"registrar: {variable} belongs into the configuration file"
    yield from program_of(compose, "registrar", "registrar", STOP_SECONDS + 10)


def program_of(compose, name, door, least_grace):
    """What holds of a worker and of a registrar; `door` is the part of the configuration with the port that is
    published, `least_grace` how many seconds a stop is given."""
    service, configuration = compose.services[name], compose.configuration(name)
    for purpose in ("health", door):
        if configuration[purpose].get("host") != "0.0.0.0":
            yield f"{name}: {purpose}.host is not reached from other containers"
    if f"/127.0.0.1/{configuration['health']['port']}\n" not in service["healthcheck"]["test"][-1]:
        yield f"{name}: its health is not asked for at health.port"
    if "GET /readyz " not in service["healthcheck"]["test"][-1]:
        yield f"{name}: its health is not its readiness"
    if [each.rpartition(":")[2] for each in service["ports"]] != [str(configuration[door]["port"])]:
        yield f"{name}: another port than {door}.port is published"
    # Compose gives ten seconds to a service that names none.
    if seconds(service.get("stop_grace_period", "10s")) < least_grace:
        yield f"{name}: is killed before it has stopped"
    if "topics" not in compose.predecessors(name):
        yield f"{name}: starts before there are topics"


def kubernetes_memory():
    """The worker's memory on Kubernetes, in bytes."""
    limits = yaml.safe_load((ROOT / "deploy/helm/lamplighter/values.yaml").read_text())["resources"]["limits"]
    return limits["memory"].replace("M", "000000")


def simulator_of(compose):
    """What the workers send is for this simulator."""
    options, configuration = compose.options("apns"), compose.configuration()
    credential = configuration["apns"]["credentials"]["home"]
    endpoint = configuration["apns"]["endpoints"]["production"]
    expected = {
        "team": credential["team"], "app": credential["apps"][0], "key-out": credential["keyFile"],
        "port": str(endpoint["port"]), "ca-file": configuration["apns"]["caFile"]}
    for option, value in expected.items():
        if options[option] != value:
            yield f"apns: its {option} is not the workers'"
    if f"AuthKey_{options['key-id']}.p8" not in credential["keyFile"]:
        yield "apns: its key-id is not the workers'"
