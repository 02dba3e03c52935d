# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Renders what deploy/ has for Kubernetes: the chart, the kustomize folders, and those files of both that
are written from others."""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import values_schema
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Surfaces"))
from processes import ENVIRONMENT, PATIENCE, PROGRAMS, ROOT, reserve_port, some  # noqa: E402, F401

sys.path.insert(0, str(ROOT / "scripts"))
import environments  # noqa: E402

DEPLOY = ROOT / "deploy"
CHART_NAME = "helm/lamplighter"
CHART = DEPLOY / CHART_NAME
KUSTOMIZE = DEPLOY / "kubernetes"
RULES = DEPLOY / "prometheus/rules.yaml"
# There on x86-64 alone.
HELM, KUBECTL = (environments.CLUSTER_PROGRAMS / name for name in ("helm", "kubectl"))
# What the chart says must not depend on whose machine this is, nor a cluster be asked.
HELM_ENVIRONMENT = {
    name: value for name, value in ENVIRONMENT.items() if not name.startswith(("HELM_", "KUBE"))}

# The files that are written from the chart: the folder, the folder of its values, the templates.
WRITTEN = [
    ("shared", None, ["networkpolicy", "poddisruptionbudget", "service", "serviceaccount"]),
    ("base", None, ["statefulset"]),
    ("overlays/production", "overlays/production",
     ["kafkatopics", "kafkausers", "prometheusrule", "scaledobject", "servicemonitor"]),
    ("overlays/production/registrar", "overlays/production",
     ["registrar", "registrar-networkpolicy", "registrar-poddisruptionbudget", "registrar-service",
      "registrar-serviceaccount", "registrar-servicemonitor"]),
    ("overlays/deployment", "overlays/deployment", ["deployment"]),
]
# The folders whose configuration is the chart's: that of its values, the template, and the file in it.
CONFIGURED = [
    ("shared", None, "configmap", "lamplighter.yaml"),
    ("overlays/production", "overlays/production", "configmap", "lamplighter.yaml"),
    ("overlays/production/registrar", "overlays/production", "registrar-configmap", "registrar.yaml"),
]
HEADER = """# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Written by `make manifests` from deploy/helm/lamplighter{}

"""
# kustomize names a ConfigMap for its content; in the chart an annotation has the checksum.
CHECKSUM = re.compile(r"^ *annotations:\n *checksum/config: \w+\n", re.MULTILINE)
HASH = re.compile(r"^(lamplighter(?:-registrar)?)-[2456789bcdfghkmt]{10}$")


def cluster_program(fetched):
    """The program that is fetched, or else the one of its name that is installed."""
    program = fetched if fetched.exists() else shutil.which(fetched.name)
    if not program:
        raise unittest.SkipTest(
            f"there is no {fetched.name}: the one that is fetched is for x86-64, and none is installed")
    return program


def helm(*arguments, chart=CHART, values=()):
    """What Helm prints. `values` are files."""
    options = [f"--values={each}" for each in values]
    done = subprocess.run(
        [cluster_program(HELM), *arguments, chart, *options],
        check=True, capture_output=True, text=True, env=HELM_ENVIRONMENT)
    return done.stdout


def rendered(values=(), chart=CHART, release="lamplighter"):
    """The text of each template of the chart that makes objects, by its name. `values` are files."""
    output = helm("template", release, chart=chart, values=values)
    parts = re.split(r"^---\n# Source: lamplighter/templates/(.+)\n", output, flags=re.MULTILINE)
    texts = {}
    for name, text in zip(parts[1::2], parts[2::2]):
        # Helm prints each object by itself, and sorts them by their kinds.
        texts[name] = f"{texts[name]}---\n{text}" if name in texts else text
    return texts


def notes(values=()):
    """What Helm says after it has installed the chart."""
    return helm("install", "lamplighter", "--dry-run=client", values=values).split("\nNOTES:\n")[1]


def values_of(folder):
    return [KUSTOMIZE / folder / "values.yaml"] if folder else []


def objects_of(text):
    return [each for each in yaml.safe_load_all(text) if each]


def chart_objects(values=(), **options):
    texts = rendered(values, **options)
    return [each for text in texts.values() for each in objects_of(text)]


def kustomize(folder, root=KUSTOMIZE):
    """What kubectl prints of a kustomize folder, and what it says of it."""
    command = [cluster_program(KUBECTL), "kustomize", root / folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout, done.stderr


def kustomized(folder, root=KUSTOMIZE):
    """The objects of a kustomize folder."""
    return objects_of(kustomize(folder, root)[0])


def written_files():
    """What each written file should have, by its path below deploy. The chart's own come first, since the
    others are rendered from them."""
    yield f"{CHART_NAME}/values.schema.json", values_schema.schema(
        (CHART / "values.yaml").read_text(), PROGRAMS / "lamplighter")
    for folder, source, templates in WRITTEN:
        texts = rendered(values_of(source))
        for name in templates:
            text = CHECKSUM.sub("", texts[f"{name}.yaml"].strip("\n") + "\n")
            yield f"kubernetes/{folder}/{written_name(folder, name)}", header(source) + text
    for folder, source, template, name in CONFIGURED:
        data = objects_of(rendered(values_of(source))[f"{template}.yaml"])[0]["data"]
        yield f"kubernetes/{folder}/{name}", header(source) + data[name]


def written_name(folder, template):
    """The file of a template. In the registrar's folder, names do not repeat that they are the registrar's, and
    registrar.yaml is its configuration."""
    if not folder.endswith("/registrar"):
        return f"{template}.yaml"
    return f"{template.removeprefix('registrar').removeprefix('-') or 'deployment'}.yaml"


def header(source):
    return HEADER.format(f"\n# with deploy/kubernetes/{source}/values.yaml." if source else ".")


def write_manifests():
    for path, text in written_files():
        (DEPLOY / path).write_text(text)


def comparable(objects):
    """The objects by kind and name, without what kustomize and the chart must do differently: how a
    ConfigMap's name or checksum follows its content, its labels and comments, empty maps, and the
    order of volumes."""
    result = {}
    for each in objects:
        each = plain(each)
        if each["kind"] == "ConfigMap":
            each["metadata"].pop("labels", None)
            each["data"] = {name: yaml.safe_load(text) for name, text in each["data"].items()}
        template = each.get("spec", {}).get("template", {}).get("metadata", {})
        template.get("annotations", {}).pop("checksum/config", None)
        if template.get("annotations") == {}:
            del template["annotations"]
        result[each["kind"], each["metadata"]["name"]] = each
    return result


def plain(value):
    if isinstance(value, dict):
        result = {key: plain(each) for key, each in value.items()
                  if not (key in ("annotations", "labels") and each in (None, {}))}
        for key in ("volumes", "volumeMounts"):
            if key in result:
                result[key] = sorted(result[key], key=lambda each: each["name"])
        return result
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, str) and HASH.match(value):
        return HASH.sub(r"\1", value)
    return value
