# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Executes the stages of a Dockerfile in roots made by debootstrap, as Docker would in images.

What stands in for Docker: a fresh minimal Debian is `debian:bookworm-slim`; the same with the packages
of Swift's official image and this machine's toolchain is `swift:…-bookworm`. A stage is a copy of its
base's folder in which chroot runs the commands as root; the context is a copy of the files that
.dockerignore lets through. Nothing is cached, and the result is a folder, not layers."""

import dataclasses
import fnmatch
import os
import pathlib
import shutil
import subprocess

import dockerfile
from command_line import ROOT, announce, fail
from debian_root import SYSTEM_PATH, DebianRoot, output, proxies, run
from dockerfile import DockerfileError, expand

SUITE = "bookworm"
DEBIAN_IMAGE = f"debian:{SUITE}-slim"
SWIFT_IMAGE = f"swift:*-{SUITE}"
# What Swift's official image for Debian 12 installs beside the toolchain, and ca-certificates, which
# git needs there for the repositories of packages.
SWIFT_IMAGE_PACKAGES = (
    "binutils", "ca-certificates", "gcc", "git", "libc6-dev", "libcurl4-openssl-dev", "libedit-dev",
    "libicu-dev", "libncurses-dev", "libpython3-dev", "libsqlite3-dev", "libstdc++-12-dev",
    "libxml2-dev", "pkg-config", "tzdata", "uuid-dev")


@dataclasses.dataclass
class Image:
    """What a stage has made: its root, and what a container of it would be started with."""

    debian: DebianRoot
    has_swift: bool
    environment: dict
    workdir: str = "/"
    user: str = "0:0"
    labels: dict = dataclasses.field(default_factory=dict)
    entrypoint: tuple = ()
    command: tuple = ()
    stop_signal: str = "SIGTERM"

    @property
    def root(self):
        return self.debian.root


class Build:
    """Builds stages, each with those it needs, once."""

    def __init__(self, path, means, folder, arguments):
        self.parsed = dockerfile.parse(path.read_text())
        self.means = means
        self.folder = folder
        self.arguments = arguments
        self.images = {}
        self.lent = set()
        ignore = path.with_name(path.name + ".dockerignore")
        self.context = folder / "context"
        _copy_context(dockerfile.ignore_patterns(ignore.read_text()), self.context)

    def image(self, name):
        if name not in self.images:
            stage = self.parsed.stage(name)
            self.images[name] = self._build(stage) if stage else self._base(name)
        return self.images[name]

    def _build(self, stage):
        base = self.image(stage.base)
        announce("FROM", stage.base, "AS", stage.name)
        image = self._copy(base, stage.name)
        declared = {}
        for instruction in stage.instructions:
            self._execute(image, instruction, declared)
        return image

    def _copy(self, base, name):
        root = self.folder / name
        # Without what is mounted there.
        run("cp", "--archive", "--one-file-system", f"{base.root}/.", _new(root))
        debian = DebianRoot(root, self.means)
        self._mount(debian, base.has_swift)
        return dataclasses.replace(
            base, debian=debian, environment=dict(base.environment), labels=dict(base.labels))

    def _base(self, name):
        has_swift = fnmatch.fnmatch(name, SWIFT_IMAGE)
        if has_swift:
            version = output("swift", "--version").partition("Swift version ")[2].split(" ")[0]
            if name.removeprefix("swift:").split("-")[0] != version:
                fail(f"the stage is from {name}, and the toolchain of this machine is {version}")
        elif name != DEBIAN_IMAGE:
            fail(f"nothing stands in for the image {name}")
        # A minimal Debian is made once: Swift's is a copy of it.
        root = self.folder / name.replace(":", "-")
        debian = DebianRoot(root, self.means)
        if has_swift:
            run("cp", "--archive", "--one-file-system", f"{self.image(DEBIAN_IMAGE).root}/.", _new(root))
        else:
            debian.bootstrap()
        self.lent.update(debian.lend_network())
        self._mount(debian, has_swift)
        environment = {"PATH": SYSTEM_PATH}
        if has_swift:
            environment["PATH"] = f"{self.means.toolchain}/usr/bin:{SYSTEM_PATH}"
            words = ["apt-get", "install", "--quiet=2", "--yes", "--no-install-recommends"]
            setting = [f"PATH={SYSTEM_PATH}", "DEBIAN_FRONTEND=noninteractive", *proxies()]
            run(*debian.command("apt-get", "update", "--quiet=2", environment=setting))
            run(*debian.command(*words, *SWIFT_IMAGE_PACKAGES, environment=setting),
                stdout=subprocess.DEVNULL)
            debian.lend_certificates()
            debian.lend_git_settings()
        return Image(debian, has_swift, environment)

    def _mount(self, debian, has_swift):
        debian.mount_system()
        if has_swift:
            debian.lend(self.means.toolchain)
            debian.lend_git_mirrors()

    def _execute(self, image, instruction, declared):
        """Executes one instruction. `declared` are the stage's build arguments so far."""
        known = {**declared, **image.environment}
        line, words = instruction.line, instruction.words

        def expanded(text):
            return expand(text, known, line)

        match instruction.name:
            case "ARG":
                declared.update((name, self._argument(name, value)) for name, value in words)
            case "ENV":
                image.environment.update((name, expanded(value)) for name, value in words)
            case "LABEL":
                image.labels.update((name, expanded(value)) for name, value in words)
            case "WORKDIR":
                image.workdir = os.path.join(image.workdir, expanded(words[0]))
                _new(image.root / image.workdir.lstrip("/"))
            case "USER":
                image.user = expanded(words[0])
            case "STOPSIGNAL":
                image.stop_signal = words[0]
            case "ENTRYPOINT":
                # As with Docker, a new entry point forgets the command of the base.
                image.entrypoint, image.command = words, ()
            case "CMD":
                image.command = words
            case "COPY":
                self._copy_files(image, instruction, [expanded(word) for word in words])
            case "RUN":
                self._run(image, instruction, known)
            case other:
                raise DockerfileError(line, f"{other} cannot be executed")

    def _argument(self, name, default):
        """The value of a build argument: the one given, or the stage's default, or that of the file."""
        if name in self.arguments:
            return self.arguments[name]
        return default if default is not None else self.parsed.arguments.get(name)

    def _run(self, image, instruction, variables):
        words = ["/bin/sh", "-c", *instruction.words] if instruction.is_shell else instruction.words
        announce("RUN", *instruction.words)
        target = None
        if "mount" in instruction.options:
            source, place = instruction.options["mount"]
            target = image.debian.lend(self.context / source, place)
        if image.user.split(":")[0] not in ("0", "root"):
            raise DockerfileError(instruction.line, "RUN as another user than root is not known")
        settings = [f"{name}={value}" for name, value in variables.items() if value is not None]
        done = subprocess.run(
            image.debian.command(
                f"--chdir={image.workdir}", "HOME=/root", *proxies(), *settings, *words),
            check=False)
        if target:
            run("umount", target)
        if done.returncode != 0:
            raise DockerfileError(instruction.line, f"RUN ended with {done.returncode}")

    def _copy_files(self, image, instruction, words):
        announce("COPY", *words)
        origin = self.context
        if "from" in instruction.options:
            origin = self.image(instruction.options["from"]).root
        *sources, destination = words
        try:
            copy_files(origin, sources, destination, image.root, image.workdir)
        except ValueError as error:
            raise DockerfileError(instruction.line, str(error)) from error

    def take_back_lent(self, image):
        """Removes from a root what it got from this machine to reach its mirrors."""
        for name in self.lent:
            (image.root / name).unlink(missing_ok=True)


def _new(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def copy_files(origin, sources, destination, root, workdir):
    """COPY: of a folder what is in it, and all becomes root's. Raises ValueError for what Docker would
    refuse, or is not known."""
    target = root / os.path.normpath(os.path.join(workdir, destination)).lstrip("/")
    is_folder = destination.endswith("/") or target.is_dir()
    if len(sources) > 1 and not destination.endswith("/"):
        raise ValueError("several files need a folder with a slash at its end")
    for source in sources:
        if any(letter in source for letter in "*?["):
            raise ValueError(f"the pattern {source} is not known")
        path = origin / source.lstrip("/")
        if not path.exists():
            raise ValueError(f"{source} is not in the context or the stage")
        if path.is_dir():
            run("cp", "--recursive", "--preserve=mode,timestamps,links", f"{path}/.", _new(target))
        else:
            place = target / path.name if is_folder else target
            _new(place.parent)
            shutil.copy2(path, place)


def _copy_context(patterns, context):
    """The files that the build may read: those that git tracks or would, less the ignored."""
    listed = output("git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard")
    for name in listed.splitlines():
        path = pathlib.Path(ROOT, name)
        if not dockerfile.is_ignored(name, patterns) and path.exists():
            target = context / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
