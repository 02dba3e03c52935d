#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Builds the image of deploy/Dockerfile without Docker, and the Debian package, and sees one push
travel through each of them.

image_build.py says what stands in for Docker. The container is the image's root, mounted read only,
and its user without any capability. docs/packages.md has the list of what is checked, and of what that
does not show. Debian's packages come from this machine's mirrors; SNAPSHOT=1 takes them from the
archive that the Dockerfile names."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import components
import container
import debian_root
import package_check
import package_lists
import third_party_notices
from command_line import ROOT, fail, start
from container import Container, Simulation
from debian_root import Means, in_namespaces, output
from image_build import DEBIAN_IMAGE, SUITE, Build
from package_check import Installed

DOCKERFILE = ROOT / "deploy/Dockerfile"
# Where the programs of the image stay, for build-deb.py and whoever wants to look.
PROGRAMS = ROOT / ".build/image"
# Folders of Debian's in which everybody may write; they are not, where the root is read only.
SHARED_FOLDERS = {"/run/lock", "/tmp", "/var/tmp"}


def expect(holds, problem):
    if not holds:
        fail(problem)


def build(folder, means, commit, from_archive):
    arguments = {"COMMIT": commit, **({} if from_archive else {"SNAPSHOT": ""})}
    made = Build(DOCKERFILE, means, folder, arguments)
    images = {name: made.image(name) for name in ("worker", "lab")}
    for name, image in images.items():
        made.take_back_lent(image)
        program = {"worker": "lamplighter", "lab": "lamplighter-lab"}[name]
        PROGRAMS.mkdir(parents=True, exist_ok=True)
        shutil.copy2(f"{image.root}{image.entrypoint[0]}", PROGRAMS / program)
    return made, images


def check_contents(image, commit):
    """The packages, labels and rights of the image, before anything runs in it."""
    listed = package_lists.read("run")
    format_ = "--showformat=${Package}=${Version}\\n"
    installed = set(output("chroot", image.root, "dpkg-query", "--show", format_).splitlines())
    expect(installed == listed, f"packages differ from the list: {sorted(installed ^ listed)}")
    labels = {name.rpartition(".")[2]: value for name, value in image.labels.items()}
    expect(labels["revision"] == commit, f"the label of the commit is {labels['revision']}")
    for name in ("title", "description", "version", "licenses"):
        expect(labels.get(name), f"there is no label {name}")
    expect(re.fullmatch(r"[1-9]\d*:[1-9]\d*", image.user), f"the user is {image.user}, not two numbers")
    bundle = (image.root / "etc/ssl/certs/ca-certificates.crt").read_text()
    expect(bundle.count("BEGIN CERTIFICATE") > 100, "there are few authorities in the bundle")
    print(f"image: {len(installed)} packages as listed, labels {labels}")


def check_libraries(place, program, wanted):
    """Every library is found, and every package that is wanted for one has one of them. Returns the
    libraries' paths."""
    libraries = place.output("ldd", program)
    expect("not found" not in libraries, f"a library is missing:\n{libraries}")
    paths = {os.path.realpath(f"{place.root}{path}").removeprefix(os.path.realpath(place.root))
             for path in re.findall(r"=> (/\S+)", libraries)}
    for package in wanted:
        files = {path.replace("/usr/lib/", "/lib/") for path in
                 place.output("dpkg-query", "--listfiles", package).split()}
        expect(any(path.replace("/usr/lib/", "/lib/") in files for path in paths),
               f"nothing needs the package {package}")
    expect("PATH" not in output("readelf", "--dynamic", f"{place.root}{program}"),
           f"{program} names folders of libraries")
    print(f"ldd: {len(paths)} libraries, each found")
    return paths


def check_notices(made, image, place, libraries):
    """The image's notices are the repository's; they state each Swift package that was linked in the image's
    build and each package of Debian that is loaded, and the texts that they point to are there."""
    shipped = (image.root / "usr/share/doc/lamplighter/NOTICES").read_text()
    expect(shipped == third_party_notices.FILE.read_text(), "the notices are not those of the repository")
    root = made.image("build").root
    linked = components.swift_packages(
        root / "source/.build/release", ["lamplighter"], root / "source/Package.resolved", root)
    lacking = third_party_notices.missing(linked, shipped)
    expect(not lacking, f"the notices do not name {', '.join(lacking)}; run make notices")
    patterns = [f"*/{os.path.basename(path)}" for path in sorted(libraries)]
    owners = {line.partition(":")[0]
              for line in place.output("dpkg-query", "--search", *patterns).splitlines()}
    lacking = owners - third_party_notices.stated(shipped).keys()
    expect(not lacking, f"the notices do not name {', '.join(sorted(lacking))}; run make notices")
    for package in owners:
        text = image.root / "usr/share/doc" / package / "copyright"
        expect(text.exists(), f"the image has no licence of {package}")
    print(f"notices: {len(linked)} Swift packages and {len(owners)} of Debian's, each with its licence")


def check_rights(image, view):
    """The user can write no file, whether or not the root is read only."""
    search = ["find", "/", "-xdev", "-writable", "!", "-type", "l"]

    def writable(command):
        # It complains of folders that the user may not even read.
        found = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return set(found.stdout.split())

    left = writable(container.as_user(image, *search))
    # It has looked everywhere if it has found those.
    expect(left == SHARED_FOLDERS, f"the user may write {sorted(left ^ SHARED_FOLDERS)}")
    left = writable(view.command(*search))
    expect(not left, f"the user may write {sorted(left)} in a root that is read only")
    identity = view.output("id", "--user").strip()
    expect(identity == image.user.partition(":")[0], f"it runs as {identity}")
    print(f"rights: user {identity} may write nothing")


def check_version(place, program, commit, version):
    line = place.output(program, "--version").splitlines()[0]
    expect(line == f"lamplighter {version} ({commit})", f"--version says {line}")


def check_package(made, simulation, commit, version):
    """The Debian package of the same program: installed, tried, booted and purged."""
    package = package_check.build(PROGRAMS / "lamplighter", PROGRAMS)
    place = Installed(package, made.image(DEBIAN_IMAGE), made.folder / "package", simulation)
    check_libraries(place, "/usr/bin/lamplighter", ())
    check_version(place, "/usr/bin/lamplighter", commit, version)
    place.configure()
    print(place.output("lamplighter", "check", "--config", "/etc/lamplighter/lamplighter.yaml"))
    place.boot()
    place.purge()
    print(f"package: {package.name} was installed, ran and was purged")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--snapshot", action="store_true", default=os.environ.get("SNAPSHOT") == "1",
        help="take Debian's packages from the archive (default: SNAPSHOT=1)")
    debian_root.add_options(parser)
    options = parser.parse_args()
    start()
    means = Means(SUITE, options.mirror)
    if not options.inside:
        sys.exit(in_namespaces(__file__, sys.argv[1:], options.keep))
    commit = output("git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*")
    commit = commit.strip()
    made, images = build(pathlib.Path(options.inside), means, commit, options.snapshot)
    worker = images["worker"]
    version = worker.labels["org.opencontainers.image.version"]
    check_contents(worker, commit)
    simulation = Simulation(made.folder / "simulation", worker, images["lab"])
    view = Container(worker, made.folder / "worker-view", simulation)
    check_rights(worker, view)
    wanted = [name for name in package_lists.wanted("run") if name != "ca-certificates"]
    libraries = check_libraries(view, worker.entrypoint[0], wanted)
    check_notices(made, worker, view, libraries)
    check_version(view, worker.entrypoint[0], commit, version)
    simulation.push(view, Container(images["lab"], made.folder / "lab-view", simulation))
    print(view.output(*worker.entrypoint, "check", "--config", "run/lamplighter.yaml"))
    simulation.stop_worker()
    check_package(made, simulation, commit, version)
    print(f"check-image: the image and the Debian package of {commit} have sent a push")


main()
