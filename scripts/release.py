#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Makes what a release has, in run/release: an archive of the stripped programs with their papers, the
sources, the Debian package, the recipe of the image, the software bill of materials, and the checksums
of all. The same commit and programs give the same archives: entries are sorted, and every time is the
commit's.

It refuses a work tree with changes, programs of another commit, and notices that miss a component. The
version is that of Version.swift, with the commit behind it until a tag vVERSION names the commit."""

import argparse
import gzip
import hashlib
import io
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile

import sbom
from command_line import ROOT, announce, fail, start
from components import PROGRAMS, components, output
from third_party_notices import require

# Where `make deb` builds, with the Swift runtime in the program.
STATIC = ROOT / ".build/static"
OPTIONS = ["--configuration", "release", "--static-swift-stdlib", "--scratch-path", STATIC]
# Beside the programs; docs is a folder.
PAPERS = ["README.md", "LICENSE", "NOTICES", "CHANGELOG.md", "SECURITY.md", "docs",
          "deploy/lamplighter.example.yaml", "deploy/prometheus/rules.yaml", "deploy/prometheus/inhibit_rules.yaml",
          "deploy/grafana/lamplighter.json"]
# What the image is made by; those that a commit has.
RECIPE = ["deploy/Dockerfile", "deploy/Dockerfile.dockerignore", "deploy/install-packages.sh",
          "deploy/packages-*.txt", "scripts/build-commit.sh", "scripts/embed-text.sh", "scripts/pin-packages.sh"]


def run(*command):
    """Runs a command, shows what it prints, and returns it."""
    announce(*command)
    told = ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="")
            told += line
    if process.returncode:
        fail(f"{command[0]} has failed", process.returncode)
    return told


# MARK: What is released


def released_version():
    """The version, and whether a tag names this commit by it."""
    if changes := sbom.git("status", "--porcelain"):
        fail(f"the work tree has changes; commit them first:\n{changes}")
    number = sbom.version()
    if f"## [{number}]" not in (ROOT / "CHANGELOG.md").read_text():
        fail(f"CHANGELOG.md has no section [{number}]")
    commit = sbom.git("describe", "--always", "--abbrev=12", "--exclude", "*")
    is_tagged = f"v{number}" in sbom.git("tag", "--points-at", "HEAD").split()
    return (number if is_tagged else f"{number}+{commit}"), commit


def build(with_deb):
    """Builds the Debian package, which the other verb does, and the programs; returns the package, if any."""
    package, options = None, OPTIONS
    if with_deb:
        told = run("make", "deb")
        package = next((pathlib.Path(path) for path in reversed(re.findall(r"[^\s'\"]+\.deb", told))
                        if pathlib.Path(path).is_file()), None)
        if package is None:
            fail("make deb has named no package that there is")
        # It has written the versions of the Swift packages; others are not to be taken.
        options = [*OPTIONS, "--force-resolved-versions"]
    for program in PROGRAMS:
        run("swift", "build", *options, "--product", program)
    return package


def check(folder, commit):
    """Looks that the programs are of this commit."""
    for program in PROGRAMS:
        line = output(folder / program, "--version").partition("\n")[0]
        if line != f"{program} {sbom.version()} ({commit})":
            fail(f"{folder / program} is {line}, not of {commit}")


# MARK: Archives


def tracked(*patterns):
    """Files of the commit that patterns name, relative to the root."""
    return sbom.git("ls-files", "--", *(f":(glob){each}" for each in patterns),
                    *(f":(glob){each}/**" for each in patterns)).splitlines()


def archive(path, folder, files, seconds):
    """Writes a tar.gz. `files` are (name, content, whether it can be executed); `folder` is in front."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content, is_program in sorted(files):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), seconds, 0o755 if is_program else 0o644
            entry.uname = entry.gname = "root"
            tar.addfile(entry, io.BytesIO(content))
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=seconds) as packed:
        packed.write(data.getvalue())


def contents(names):
    return [(name, (ROOT / name).read_bytes(), os.access(ROOT / name, os.X_OK)) for name in names]


def stripped(program):
    """A program without what only a debugger reads. The names of functions stay, for stack traces."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / program.name
        subprocess.run(["strip", "--strip-debug", "-o", path, program], check=True)
        return path.read_bytes()


def checksums(folder):
    """The text of SHA256SUMS, as `sha256sum --check` reads it."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
                   for path in sorted(folder.iterdir()) if path.name != "SHA256SUMS")


# MARK: The release


def release(folder, programs, package):
    version, commit = released_version()
    seconds = sbom.epoch()
    check(programs, commit)
    found = components(programs)
    require(found)
    bill = sbom.text(sbom.document(found, version, commit, seconds)).encode()

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    name = f"lamplighter-{version}"
    binaries = [(f"bin/{each}", stripped(programs / each), True) for each in PROGRAMS]
    archive(folder / f"{name}-linux-{platform.machine()}.tar.gz", name,
            [*binaries, *contents(tracked(*PAPERS)), ("sbom.cdx.json", bill, False)], seconds)
    archive(folder / f"{name}-source.tar.gz", f"{name}-source", contents(tracked("*")), seconds)
    archive(folder / f"{name}-image.tar.gz", f"{name}-image", contents(tracked(*RECIPE)), seconds)
    (folder / f"{name}-sbom.cdx.json").write_bytes(bill)
    if package:
        shutil.copy(package, folder)
    (folder / "SHA256SUMS").write_text(checksums(folder))
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:12,}  {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, metavar="FOLDER",
                        help="the folder of a build that there is, instead of building")
    parser.add_argument("--deb", type=pathlib.Path, metavar="FILE", help="its Debian package")
    parser.add_argument("--without-deb", action="store_true", help="leave the Debian package out")
    parser.add_argument("--released-version", action="store_true",
                        help="make nothing: print the version that this commit's tag releases, or refuse")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "run/release", metavar="FOLDER",
                        help="where the release goes (default: run/release)")
    options = parser.parse_args()
    start()
    version, _ = released_version()
    if options.released_version:
        if "+" in version:
            fail(f"no tag v{sbom.version()} names this commit")
        print(version)
        return
    package = options.deb
    if options.programs is None:
        package = build(with_deb=not options.without_deb)
    release(options.output, options.programs or STATIC / "release", package)


if __name__ == "__main__":
    main()
