# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The lists of Debian's packages that the image is made of, deploy/packages-*.txt."""

import re

from command_line import ROOT, fail

WANTED = "# Wanted: "


def path(name):
    return ROOT / f"deploy/packages-{name}.txt"


def read(name):
    """The packages of a list, each as name=version."""
    return {line for line in path(name).read_text().splitlines() if not line.startswith("#")}


def wanted(name):
    """The packages for which all others of a list are there, from its line `# Wanted: …`."""
    found = re.search(rf"^{WANTED}(.*)", path(name).read_text(), re.M)
    return found[1].split() if found else fail(f"{path(name)} has no line {WANTED}")
