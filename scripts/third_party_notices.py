#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Writes NOTICES from a build: what third-party software the programs consist of, under which licences,
with the texts that must go with a copy. It names no versions, so that it changes only with the parts.

The image, the Debian package and a release have this file as it is; `require` is how whoever makes one of
them sees that it fits the programs."""

import argparse
import pathlib

from command_line import ROOT, fail
from components import APACHE, SWIFT, components

FILE = ROOT / "NOTICES"
WIDTH = 32
# Of a Debian package whose licence is not in components.py.
UNKNOWN = "see its file"
HEAD = """Third-party software in Lamplighter
===================================

Written by `make notices` from what the linker took. Lamplighter itself is under Apache-2.0: see LICENSE.

In the programs' files
----------------------

"""
DEBIAN = """
Shared libraries that the programs load
---------------------------------------

Packages of Debian, which are not part of a release of Lamplighter. Each has its licence in
/usr/share/doc/PACKAGE/copyright.

"""
TEXTS = """
Texts
-----

The text of Apache-2.0 is in LICENSE."""


def line(name, licence, note=""):
    return f"{name:{WIDTH}}{licence}{note}\n"


def section(title, text):
    return f"\n\n--- {title} ---\n\n{text.strip()}\n"


def runtime_exception(text):
    """The exception that the Swift project adds to Apache-2.0, the last part of its licence."""
    return text[text.index("## Runtime Library Exception"):]


def notices(found):
    """The whole text, from the components."""
    linked = [each for each in found if each.is_linked_in]
    text = HEAD
    for each in linked:
        text += line(each.name, each.licence, f" (in {each.carrier})" if each.carrier else "")
    text += DEBIAN
    for each in found:
        if not each.is_linked_in:
            text += line(each.name, each.licence or UNKNOWN)
    text += TEXTS
    exception = next((path for each in linked if each.licence == SWIFT for path in each.texts), None)
    if exception:
        text += section("Swift-exception", runtime_exception(exception.read_text()))
    for each in linked:
        for path in each.texts:
            # The one text of Apache-2.0 stands for all.
            if not (path.name.startswith("LICENSE") and each.licence in (APACHE, SWIFT)):
                text += section(f"{each.name}: {path.name}", path.read_text())
        if each.copyright and not each.texts:
            text += section(each.name, f"{each.copyright}\n{each.source}\nLicence: {each.licence}")
    return text


def stated(text):
    """The licence that a text of notices states for each component, by the component's name."""
    lists = text.partition(TEXTS)[0].splitlines()
    return {one[:WIDTH].rstrip(): one[WIDTH:].partition(" (in ")[0] for one in lists if "  " in one[:WIDTH]}


def missing(found, text):
    """The components that a text of notices does not name with their licences."""
    licences = stated(text)
    return sorted(each.name for each in found if licences.get(each.name) != (each.licence or UNKNOWN))


def require(found):
    """Ends the program if NOTICES lacks one of the components that are linked in. Those that are loaded are
    not asked for: in another release of Debian they have other names."""
    linked = [each for each in found if each.is_linked_in]
    if lacking := missing(linked, FILE.read_text()):
        fail(f"NOTICES does not name {', '.join(lacking)}; run make notices")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="the folder of the build, such as .build/release")
    options = parser.parse_args()
    FILE.write_text(notices(components(options.folder)))


if __name__ == "__main__":
    main()
