#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Builds the Debian package of the worker, .build/deb/lamplighter_VERSION_ARCHITECTURE.deb, for the
Debian that it runs on: its dependencies are the packages whose libraries the program was linked with.

Until a commit has the tag of its version, the package's version is that of the program with `~git`,
the day and the commit, which dpkg takes as older than the release. DEBFULLNAME and DEBEMAIL name the
maintainer, as for Debian's own tools; else it is git's user."""

import argparse
import gzip
import os
import pathlib
import platform
import re
import shutil
import string
import subprocess
import tempfile

from command_line import ROOT, announce, fail, start
from components import components
from third_party_notices import FILE as NOTICES
from third_party_notices import require

PACKAGE = "lamplighter"
TEMPLATES = ROOT / "deploy/debian"
STATIC = ROOT / ".build/static"
MAINTAINER_SCRIPTS = ("postinst", "prerm", "postrm")


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout.strip()


def git(*words):
    return output("git", "-C", ROOT, *words)


def build():
    """Builds the program with the Swift runtime in it."""
    for command in (
            ["scripts/pin-packages.sh"],
            ["swift", "build", "--configuration", "release", "--force-resolved-versions",
             "--static-swift-stdlib", "--disable-local-rpath", "--scratch-path", STATIC,
             "--product", PACKAGE]):
        announce(*command)
        subprocess.run(command, cwd=ROOT, check=True)
    program = STATIC / "stripped"
    subprocess.run(["strip", "-o", program, STATIC / "release" / PACKAGE], check=True)
    require(components(STATIC / "release", [PACKAGE]))
    return program


def version():
    source = (ROOT / "Sources/App/Entrypoint/Version.swift").read_text()
    number = re.search(r'let number = "([\d.]+)"', source)[1]
    commit = git("describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*")
    if f"v{number}" not in git("tag", "--points-at", "HEAD").split() or commit.endswith("-dirty"):
        day = git("log", "-1", "--format=%cd", "--date=format:%Y%m%d")
        number += f"~git{day}.{commit.replace('-', '.')}"
    # One that is built for Debian 13 is newer than the same for Debian 12.
    system = platform.freedesktop_os_release()
    return f"{number}+{'deb' if system['ID'] == 'debian' else system['ID']}{system['VERSION_ID']}"


def maintainer():
    name = os.environ.get("DEBFULLNAME") or git("config", "user.name")
    address = os.environ.get("DEBEMAIL") or git("config", "user.email")
    return f"{name} <{address}>"


def libraries(program):
    """What dpkg-shlibdeps says that the program depends on."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "debian").mkdir()
        (pathlib.Path(folder) / "debian/control").write_text(
            f"Source: {PACKAGE}\n\nPackage: {PACKAGE}\nArchitecture: any\n")
        found = output("dpkg-shlibdeps", "-O", "-e", program.resolve(), cwd=folder)
    return found.removeprefix("shlibs:Depends=")


def compressed(path, data):
    """Without a time in it, so that the same text makes the same file."""
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(data, mtime=0))


def changelog(number, epoch):
    when = output("date", "--utc", "--rfc-email", f"--date=@{epoch}")
    return (f"{PACKAGE} ({number}) unstable; urgency=medium\n\n"
            f"  * What has changed is in CHANGELOG.md.\n\n -- {maintainer()}  {when}\n")


def fill(tree, program, number, epoch):
    """Lays out the files of the package."""
    doc = tree / "usr/share/doc" / PACKAGE
    for folder in ("usr/bin", "usr/lib/systemd/system", "etc/lamplighter", "usr/share/lintian/overrides",
                   doc.relative_to(tree)):
        (tree / folder).mkdir(parents=True)
    shutil.copy(program, tree / "usr/bin" / PACKAGE)
    shutil.copy(TEMPLATES / "lamplighter.service", tree / "usr/lib/systemd/system")
    shutil.copy(ROOT / "deploy/lamplighter.example.yaml", tree / "etc/lamplighter/lamplighter.yaml")
    shutil.copy(TEMPLATES / "lintian-overrides", tree / "usr/share/lintian/overrides" / PACKAGE)
    shutil.copy(TEMPLATES / "copyright", doc)
    compressed(doc / NOTICES.name, NOTICES.read_bytes())
    compressed(doc / "changelog", changelog(number, epoch).encode())
    for page in ("README.md", "CHANGELOG.md", *(ROOT / "docs").glob("*.md")):
        shutil.copy(ROOT / page, doc)
    # records.md links to them.
    shutil.copytree(ROOT / "docs/schemas", doc / "schemas")


def control(tree, program, number):
    folder = tree / "DEBIAN"
    folder.mkdir()
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    values = {
        "version": number, "architecture": output("dpkg", "--print-architecture"),
        "maintainer": maintainer(), "size": -(-size // 1024), "libraries": libraries(program)}
    template = string.Template((TEMPLATES / "control").read_text())
    (folder / "control").write_text(template.substitute(values))
    (folder / "conffiles").write_text("/etc/lamplighter/lamplighter.yaml\n")
    for name in MAINTAINER_SCRIPTS:
        shutil.copy(TEMPLATES / name, folder)
    sums = [output("md5sum", path.relative_to(tree), cwd=tree) for path in sorted(tree.rglob("*"))
            if path.is_file() and folder not in path.parents]
    (folder / "md5sums").write_text("".join(f"{line}\n" for line in sums))


def set_rights(tree):
    """What a package needs, whatever the work tree and umask have."""
    for path in tree.rglob("*"):
        runs = path.is_dir() or path.parent.name == "bin" or path.name in MAINTAINER_SCRIPTS
        path.chmod(0o755 if runs else 0o644)
    tree.chmod(0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, help="a program that was built before")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / ".build/deb", metavar="FOLDER",
                        help="where the package goes (default: .build/deb)")
    options = parser.parse_args()
    start()
    if not shutil.which("dpkg-shlibdeps"):
        fail("dpkg-shlibdeps is missing; install dpkg-dev")
    program = options.program or build()
    number, epoch = version(), git("log", "-1", "--format=%ct")
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        fill(tree, program, number, epoch)
        control(tree, program, number)
        set_rights(tree)
        # dpkg-deb takes this as the time of what is newer.
        environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, options.output]
        announce(*command)
        subprocess.run(command, env=environment, check=True)


main()
