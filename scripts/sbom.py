#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Writes the software bill of materials of built programs: CycloneDX 1.6, as JSON, the same for the same
build. Its time is SOURCE_DATE_EPOCH, else that of the commit."""

import argparse
import datetime
import json
import os
import pathlib
import re
import sys
import uuid

from command_line import ROOT
from components import components, output

SPECIFICATION = "1.6"
NAME = "lamplighter"


def version():
    source = (ROOT / "Sources/App/Entrypoint/Version.swift").read_text()
    return re.search(r'let number = "([\d.]+)"', source)[1]


def git(*words):
    return output("git", "-C", ROOT, *words).strip()


def epoch():
    """When the sources were committed, in seconds since 1970."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))


def licences(component):
    """The licence as CycloneDX wants it; the name of the file that has it where it is not known."""
    if component.licence:
        return [{"expression": component.licence}]
    return [{"license": {"name": f"see {component.texts[0] if component.texts else component.source}"}}]


def entry(component):
    """A component as CycloneDX wants it."""
    properties = {"kind": component.kind, "linked": "statically" if component.is_linked_in else "dynamically"}
    if component.kind == "debian":
        properties["debianSource"] = component.source
    if component.carrier:
        properties["carriedBy"] = component.carrier
    result = {
        "type": "library", "bom-ref": reference(component), "name": component.name,
        "licenses": licences(component), "purl": component.purl,
        "properties": [
            {"name": f"lamplighter:{key}", "value": value} for key, value in sorted(properties.items())]}
    if component.version:
        result["version"] = component.version
    if component.copyright:
        result["copyright"] = component.copyright
    if component.kind != "debian":
        comment = {"comment": f"commit {component.revision}"} if component.revision else {}
        result["externalReferences"] = [{"type": "vcs", "url": component.source, **comment}]
    return result


def reference(component):
    return f"{component.kind}/{component.name}"


def dependencies(found, root):
    """Who needs whom. Which Swift package needs which is not read; all of them are the root's."""
    references = {each.name: reference(each) for each in found}
    carried = {}
    for each in found:
        if each.carrier:
            carried.setdefault(each.carrier, set()).add(each.name)
    graph = [{"ref": root, "dependsOn": sorted(reference(each) for each in found if each.is_direct)}]
    for each in found:
        needs = each.needs | carried.get(each.name, set())
        graph.append({"ref": reference(each), "dependsOn": sorted(references[name] for name in needs)})
    return graph


def document(found, number, commit, seconds):
    """The bill of materials. `seconds` is its time, since 1970."""
    root = f"{NAME}@{number}"
    time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    result = {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPECIFICATION}.schema.json",
        "bomFormat": "CycloneDX", "specVersion": SPECIFICATION, "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tools": {"components": [{"type": "application", "name": "scripts/sbom.py"}]},
            "component": {
                "type": "application", "bom-ref": root, "name": NAME, "version": number,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": f"pkg:generic/{NAME}@{number.replace('+', '%2B')}",
                "properties": [{"name": "lamplighter:commit", "value": commit}]}},
        "components": [entry(each) for each in found],
        "dependencies": dependencies(found, root)}
    # The same content has the same number.
    content = json.dumps(result, sort_keys=True)
    result["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}"
    return result


def text(bill):
    return json.dumps(bill, indent=1, ensure_ascii=False) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="the folder of the build, such as .build/release")
    parser.add_argument("--output", type=pathlib.Path, metavar="FILE", help="where to write (default: print)")
    options = parser.parse_args()
    commit = git("describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*")
    written = text(document(components(options.folder), version(), commit, epoch()))
    if options.output:
        options.output.write_text(written)
    else:
        sys.stdout.write(written)


if __name__ == "__main__":
    main()
