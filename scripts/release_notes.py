#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Writes the text of a release on standard output: how to begin with what it has published, and what is new,
the section of CHANGELOG.md."""

import argparse
import re

from command_line import ROOT, fail

BEGINNING = """\
Two workers under traffic, kills and refusals, with everything simulated; the worker; and the chart:

```sh
docker run --rm --tty --tmpfs /tmp {registry}/lamplighter-lab:{version} demo
docker run --rm --volume "$PWD/lamplighter":/etc/lamplighter:ro {registry}/lamplighter:{version}
helm install lamplighter oci://{registry}/charts/lamplighter --version {version} --namespace push --values yours.yaml
```

`SHA256SUMS` has the checksums of the files. Files, images and chart have a provenance, which `gh attestation verify`
checks (docs/packages.md).
"""


def section(text, version):
    """The section of a version in the changelog, without its heading; empty if there is none."""
    found = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## |^\[|\Z)", text, re.DOTALL | re.MULTILINE)
    return found[1].strip() if found else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", help="such as 0.1.0")
    parser.add_argument("registry", help="where images and charts are, such as ghcr.io/example")
    options = parser.parse_args()
    news = section((ROOT / "CHANGELOG.md").read_text(), options.version)
    if not news:
        fail(f"CHANGELOG.md has no section [{options.version}], or an empty one")
    print(BEGINNING.format(registry=options.registry, version=options.version))
    print(news)


if __name__ == "__main__":
    main()
