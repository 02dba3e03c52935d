#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Proves that a clone and make suffice: a fresh Debian 12 with git, make and a Swift toolchain
clones HEAD and runs `make run-local`, which sets up all that `make demo` and `make test` need.
Fails if the first push takes more than 12 minutes from the clone on.

The fresh machine is a chroot, made and used in a mount and a process namespace of its own: whatever
ends it, no mount and no process is left. Needs root, on Debian or Ubuntu."""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from command_line import ROOT, announce, fail, start

SUITE = "bookworm"
SECONDS_MAX = 720
# The folder of the clone in the fresh machine.
HOME = "/root/lamplighter"
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# With this argument the program calls itself inside the namespaces.
INSIDE = "--inside"


def run(*command):
    subprocess.run(command, check=True)


def output(*command):
    """What a command prints; nothing if it fails."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout


def succeeds(*command):
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def debian_sources(mirror):
    """What this machine's apt has of the suite, as lines of a sources.list."""
    if mirror:
        return [f"deb {mirror} {SUITE} main"]
    lines = output(
        "apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
        "Created-By: Packages", "Origin: Debian").splitlines()
    return [line for line in lines if line.split()[2].startswith(SUITE)]


class Means:
    """What the check needs of this machine; fails where something is missing."""

    def __init__(self, mirror):
        if os.geteuid() != 0:
            fail("cannot run: only root may make a chroot")
        if not shutil.which("apt-get"):
            fail("cannot run: this needs Debian or Ubuntu (apt-get)")
        if not succeeds("unshare", "--mount", "--pid", "--fork", "true"):
            fail("cannot run: mounts are not allowed here (a container without CAP_SYS_ADMIN?)")
        self.toolchain = self._toolchain()
        if not debian_sources(mirror):
            run("apt-get", "update", "--quiet=2")
        self.sources = debian_sources(mirror)
        mirrors = [line.split()[1] for line in self.sources if line.split()[2] == SUITE]
        if not mirrors:
            fail(f"cannot run: apt knows no mirror of {SUITE} here; give MIRROR=url")
        self.mirror = mirrors[0]
        if not shutil.which("debootstrap") and not succeeds(
                "apt-get", "install", "--yes", "--no-install-recommends", "debootstrap"):
            fail("cannot run: debootstrap is missing and cannot be installed")

    @staticmethod
    def _toolchain():
        """The folder of the Swift toolchain, which is lent to the fresh machine."""
        swift = shutil.which("swift")
        if not swift:
            fail("cannot run: there is no swift to lend to the fresh machine")
        folder = os.path.realpath(swift).partition("/usr/bin/")[0]
        if not folder:
            fail("cannot run: swift lies in /usr, among the system's files; unpack one elsewhere")
        return folder


class Machine:
    """The fresh machine. All of this runs in the namespaces."""

    def __init__(self, folder, means):
        self.log = folder / "debootstrap.log"
        self.root = folder / "root"
        self.means = means

    def make(self):
        announce("debootstrap", "--variant=minbase", SUITE)
        with open(self.log, "wb") as log:
            made = subprocess.run(
                ["debootstrap", "--variant=minbase", "--include=ca-certificates,git,make", SUITE,
                 self.root, self.means.mirror], stdout=log, stderr=log, check=False)
        if made.returncode != 0:
            last = self.log.read_text(errors="replace").splitlines()[-5:]
            fail("\n".join(["the fresh machine could not be made", *last]))
        self._lend_settings()
        run("mount", "-t", "proc", "proc", self.root / "proc")
        run("mount", "--rbind", "/dev", self.root / "dev")
        self._lend(self.means.toolchain)
        for folder in self._git_mirrors():
            self._lend(folder)

    def _lend_settings(self):
        """The fresh machine reaches the network as this one does: names, proxies, certificates,
        mirrors of git repositories. Nothing else of this machine goes in."""
        etc = self.root / "etc"
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", etc / name)
        (etc / "apt/sources.list").write_text("".join(f"{line}\n" for line in self.means.sources))
        settings = [line for line in output("apt-config", "dump").splitlines()
                    if re.match(r"Acquire::(https?|Check-|Retries)", line, re.IGNORECASE)]
        (etc / "apt/apt.conf.d/90machine").write_text("".join(f"{line}\n" for line in settings))
        authorities = "usr/local/share/ca-certificates"
        for authority in pathlib.Path("/", authorities).glob("*.crt"):
            shutil.copy(authority, self.root / authorities)
        subprocess.run(
            ["chroot", self.root, "update-ca-certificates"], stdout=subprocess.DEVNULL, check=True)
        lines = output("git", "config", "--get-regexp", r"^(url\..*\.insteadof|http\..*proxy)$")
        for line in lines.splitlines():
            setting, _, value = line.partition(" ")
            run("git", "config", "--file", etc / "gitconfig", "--add", setting, value)

    @staticmethod
    def _git_mirrors():
        """Directories that git is told to fetch from instead of a host."""
        names = output("git", "config", "--name-only", "--get-regexp", r"^url\./.*\.insteadof$")
        return sorted({name[len("url."):-len(".insteadof")].rstrip("/")
                       for name in names.splitlines()})

    def _lend(self, folder):
        """Shows a folder to the fresh machine at the same place, read only."""
        place = self.root / folder.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", folder, place)
        run("mount", "-o", "remount,bind,ro", place)

    def push(self, seconds_max):
        """Clones HEAD and runs it until its first push is accepted."""
        began = time.monotonic()
        announce("git clone")
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, f"{self.root}{HOME}")
        announce("make run-local")
        proxies = [f"{name}={os.environ[name]}" for name in PROXIES if os.environ.get(name)]
        system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        pushed = subprocess.run(
            ["chroot", self.root, "env", "--ignore-environment",
             f"PATH={self.means.toolchain}/usr/bin:{system}", "HOME=/root", "LANG=C.UTF-8",
             *proxies, "timeout", "--kill-after=10", str(seconds_max),
             "make", "--directory", HOME, "run-local"], check=False)
        took = f"{time.monotonic() - began:.0f} s after the clone (at most {seconds_max})"
        if pushed.returncode != 0:
            fail(f"no push accepted, {took}")
        print(f"clean machine: first push accepted {took}")


def remove(folder):
    """Removes the fresh machine; twice, since processes that are just ending may still write."""
    for _ in range(2):
        if succeeds("rm", "-rf", "--one-file-system", folder):
            return
        time.sleep(1)


def in_namespaces(arguments):
    """Runs this program in a mount and a process namespace of its own; returns its status."""
    inhabitant = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child",
         sys.executable, __file__, *arguments])
    try:
        return inhabitant.wait()
    finally:
        # This is the namespace's first process: when it ends, all others end and the mounts vanish.
        inhabitant.send_signal(signal.SIGKILL)
        inhabitant.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--mirror", metavar="URL", default=os.environ.get("MIRROR"),
        help="the Debian mirror, if not the one this machine's apt uses (default: MIRROR)")
    parser.add_argument(
        "--seconds-max", metavar="SECONDS", type=int,
        default=os.environ.get("SECONDS_MAX") or SECONDS_MAX,
        help=f"what fails, from the clone to the first push (default: SECONDS_MAX, {SECONDS_MAX})")
    parser.add_argument(
        "--keep", action="store_true", default=os.environ.get("KEEP") == "1",
        help="leave the root for a look (default: KEEP=1)")
    parser.add_argument(INSIDE, metavar="FOLDER", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    start()
    means = Means(options.mirror)
    if options.inside:
        machine = Machine(options.inside, means)
        machine.make()
        machine.push(options.seconds_max)
        return
    folder = tempfile.mkdtemp()
    try:
        status = in_namespaces([*sys.argv[1:], INSIDE, folder])
    finally:
        if options.keep:
            print(f"The fresh machine is kept in {folder}/root")
        else:
            remove(folder)
    sys.exit(status)


main()
