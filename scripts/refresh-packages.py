#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Rewrites the lists of packages that the image is made of, deploy/packages-*.txt, with the versions of
today, and the day of Debian's archive in deploy/Dockerfile.

Which packages are wanted is in each list's line `# Wanted:`; apt says what these need. Of the runtime
list that is all of a minimal Debian, so that it names every package of the image. The Swift packages
are those that the manifest of today resolves to; only those of benchmarks are left out."""

import argparse
import datetime
import email.utils
import json
import os
import pathlib
import re
import subprocess
import tempfile

import package_lists
from command_line import ROOT, fail, start
from debian_root import debian_sources

SUITE = "bookworm"
KEYS = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# A minimal Debian, as debootstrap's variant minbase makes it: all packages of this priority, and these.
# usr-is-merged stands for usrmerge, a program that debootstrap does without.
MINIMAL_PRIORITY = "required"
MINIMAL = ["apt", "usr-is-merged"]
ARGUMENT = re.compile(r"^(ARG SNAPSHOT=)\S+$", re.M)
# The archive takes a picture of Debian's mirrors four times a day.
ARCHIVE_INTERVAL = datetime.timedelta(hours=6)


class Apt:
    """apt of a machine on which nothing is installed, with the mirrors of the suite."""

    def __init__(self, folder, mirror):
        self.folder = folder
        sources = debian_sources(SUITE, mirror)
        if not sources:
            fail(f"apt knows no mirror of {SUITE} here; give --mirror")
        signed = f" [signed-by={KEYS}]" if KEYS.exists() else ""
        (folder / "sources").write_text(
            "".join(line.replace("deb ", f"deb{signed} ", 1) + "\n" for line in sources))
        (folder / "status").touch()
        for name in ("none", "lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        self.run("update", "--quiet=2")

    def run(self, *words, program="apt-get"):
        options = {
            "Dir::Etc::SourceList": self.folder / "sources", "Dir::Etc::SourceParts": self.folder / "none",
            "Dir::Etc::Preferences": self.folder / "status",
            "Dir::Etc::PreferencesParts": self.folder / "none",
            "Dir::State::Lists": self.folder / "lists", "Dir::State::Status": self.folder / "status",
            "Dir::Cache": self.folder / "cache", "APT::Architectures": "amd64",
            "APT::Sandbox::User": "root"}
        return subprocess.run(
            [program, *(f"--option={name}={value}" for name, value in options.items()), *words],
            stdout=subprocess.PIPE, text=True, check=True).stdout

    def needed(self, packages):
        """The packages and all that they need, as name=version."""
        simulated = self.run("install", "--simulate", "--no-install-recommends", *packages)
        return sorted("=".join(found) for found in re.findall(r"^Inst (\S+) \((\S+)", simulated, re.M))

    def minimal(self):
        """The packages of a minimal Debian."""
        listed = self.run("dumpavail", program="apt-cache").split("\n\n")
        fields = [dict(re.findall(r"^(Package|Priority): (.*)", each, re.M)) for each in listed]
        return MINIMAL + [each["Package"] for each in fields if each.get("Priority") == MINIMAL_PRIORITY]

    def archive_day(self):
        """When the archive has taken the picture of the newest of these lists."""
        dates = [re.search(r"^Date: (.*)", path.read_text(), re.M)[1]
                 for path in (self.folder / "lists").glob("*Release")]
        newest = max(email.utils.parsedate_to_datetime(each) for each in dates)
        return (newest + ARCHIVE_INTERVAL).strftime("%Y%m%dT%H%M%SZ")


def write_debian(mirror):
    with tempfile.TemporaryDirectory() as folder:
        apt = Apt(pathlib.Path(folder), mirror)
        for name, more in (("run", apt.minimal()), ("build", [])):
            path = package_lists.path(name)
            comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
            packages = apt.needed([*package_lists.wanted(name), *more])
            path.write_text("\n".join([*comments, *packages]) + "\n")
            print(f"{path.relative_to(ROOT)}: {len(packages)} packages")
        dockerfile = ROOT / "deploy/Dockerfile"
        dockerfile.write_text(ARGUMENT.sub(rf"\g<1>{apt.archive_day()}", dockerfile.read_text()))


def write_swift():
    """From a copy of the manifest alone: the resolved file of a work tree may be of another day."""
    path = package_lists.path("swift")
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    with tempfile.TemporaryDirectory() as folder:
        manifest = (ROOT / "Package.swift").read_text()
        (pathlib.Path(folder) / "Package.swift").write_text(manifest)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("LAMPLIGHTER_")}
        subprocess.run(["swift", "package", "resolve"], cwd=folder, env=environment, check=True)
        resolved = json.loads((pathlib.Path(folder) / "Package.resolved").read_text())
    lines = [f"{pin['location']} {pin['state']['version']}" for pin in resolved["pins"]]
    path.write_text("\n".join([*comments, *lines]) + "\n")
    print(f"{path.relative_to(ROOT)}: {len(lines)} packages")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--mirror", metavar="URL", default=os.environ.get("MIRROR"),
        help="the Debian mirror, if not the one this machine's apt uses (default: MIRROR)")
    options = parser.parse_args()
    start()
    write_debian(options.mirror)
    write_swift()


main()
