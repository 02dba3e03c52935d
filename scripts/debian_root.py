# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""A fresh Debian, made by debootstrap, for the programs of this folder that need another machine.

It is a chroot, made and used in a mount and a process namespace of its own: whatever ends the
program, no mount and no process is left. Needs root, on Debian."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from command_line import announce, fail

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# With this argument a program calls itself inside the namespaces.
INSIDE = "--inside"


def run(*command, **options):
    subprocess.run(command, check=True, **options)


def output(*command):
    """What a command prints; nothing if it fails."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout


def succeeds(*command):
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def own_suite():
    """The code name of this machine's system, such as bookworm."""
    words = pathlib.Path("/etc/os-release").read_text()
    return re.search(r"^VERSION_CODENAME=(\w*)", words, re.M)[1]


def debian_sources(suite, mirror):
    """What this machine's apt has of the suite, as lines of a sources.list; of another suite what
    it has of its own, with the other name."""
    if mirror:
        return [f"deb {mirror} {suite} main"]
    lines = output(
        "apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
        "Created-By: Packages", "Origin: Debian").splitlines()
    for name in (suite, own_suite()):
        found = [line for line in lines if line.split()[2].split("-")[0] == name]
        if found:
            return [re.sub(rf" {name}\b", f" {suite}", line) for line in found]
    return []


class Means:
    """What a fresh Debian needs of this machine; fails where something is missing."""

    def __init__(self, suite, mirror):
        if os.geteuid() != 0:
            fail("cannot run: only root may make a chroot")
        if not shutil.which("apt-get"):
            fail("cannot run: this needs Debian (apt-get)")
        if not succeeds("unshare", "--mount", "--pid", "--fork", "true"):
            fail("cannot run: mounts are not allowed here (a container without CAP_SYS_ADMIN?)")
        self.suite = suite
        self.toolchain = self._toolchain()
        if not debian_sources(suite, mirror):
            run("apt-get", "update", "--quiet=2")
        self.sources = debian_sources(suite, mirror)
        mirrors = [line.split()[1] for line in self.sources if line.split()[2] == suite]
        if not mirrors:
            fail(f"cannot run: apt knows no mirror of {suite} here; give MIRROR=url")
        self.mirror = mirrors[0]
        if not shutil.which("debootstrap") and not succeeds(
                "apt-get", "install", "--yes", "--no-install-recommends", "debootstrap"):
            fail("cannot run: debootstrap is missing and cannot be installed")

    @staticmethod
    def _toolchain():
        """The folder of the Swift toolchain, which is lent to the fresh Debian."""
        swift = shutil.which("swift")
        if not swift:
            fail("cannot run: there is no swift to lend to the fresh machine")
        folder = os.path.realpath(swift).partition("/usr/bin/")[0]
        if not folder:
            fail("cannot run: swift lies in /usr, among the system's files; unpack one elsewhere")
        return folder


class DebianRoot:
    """The folder of a fresh Debian. All of this runs in the namespaces."""

    def __init__(self, root, means):
        self.root = root
        self.means = means

    def bootstrap(self, *packages):
        """Makes the smallest Debian that has apt, and the packages."""
        announce("debootstrap", "--variant=minbase", self.means.suite)
        include = [f"--include={','.join(packages)}"] if packages else []
        made = subprocess.run(
            ["debootstrap", "--variant=minbase", *include, self.means.suite, self.root,
             self.means.mirror],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if made.returncode != 0:
            fail("\n".join(["the fresh Debian could not be made", *made.stdout.splitlines()[-5:]]))

    def mount_system(self):
        run("mount", "-t", "proc", "proc", self.root / "proc")
        run("mount", "--rbind", "/dev", self.root / "dev")

    def lend_network(self):
        """The fresh Debian reaches the network as this machine does: names, proxies, mirrors.
        Returns the files, relative to the root, that are of this machine alone."""
        for name in ("etc/resolv.conf", "etc/hosts"):
            shutil.copy(f"/{name}", self.root / name)
        settings = [line for line in output("apt-config", "dump").splitlines()
                    if re.match(r"Acquire::(https?|Check-|Retries)", line, re.IGNORECASE)]
        files = {"etc/apt/sources.list": self.means.sources,
                 "etc/apt/apt.conf.d/90machine": settings}
        for name, lines in files.items():
            (self.root / name).write_text("".join(f"{line}\n" for line in lines))
        return list(files)

    def lend_certificates(self):
        authorities = "usr/local/share/ca-certificates"
        for authority in pathlib.Path("/", authorities).glob("*.crt"):
            shutil.copy(authority, self.root / authorities)
        run("chroot", self.root, "update-ca-certificates", stdout=subprocess.DEVNULL)

    def lend_git_settings(self):
        """Repositories come from where this machine's git has them; nothing else of it goes in."""
        lines = output("git", "config", "--get-regexp", r"^(url\..*\.insteadof|http\..*proxy)$")
        for line in lines.splitlines():
            setting, _, value = line.partition(" ")
            run("git", "config", "--file", self.root / "etc/gitconfig", "--add", setting, value)

    def lend_git_mirrors(self):
        """The folders from which git takes repositories, if they are on this machine."""
        for folder in self._git_mirrors():
            self.lend(folder)

    @staticmethod
    def _git_mirrors():
        """Directories that git is told to fetch from instead of a host."""
        names = output("git", "config", "--name-only", "--get-regexp", r"^url\./.*\.insteadof$")
        return sorted({name[len("url."):-len(".insteadof")].rstrip("/")
                       for name in names.splitlines()})

    def lend(self, folder, place=None, writable=False):
        """Shows a folder or a file of this machine, at the same place or at another."""
        target = self.root / str(place or folder).lstrip("/")
        if pathlib.Path(folder).is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        run("mount", "--bind", folder, target)
        if not writable:
            run("mount", "-o", "remount,bind,ro", target)
        return target

    def command(self, *words, environment=()):
        """The command that runs another one in here, with nothing else in its environment."""
        return ["chroot", self.root, "env", "--ignore-environment", *environment, *words]


def proxies():
    """The variables of this machine that name its proxies."""
    return [f"{name}={os.environ[name]}" for name in PROXIES if os.environ.get(name)]


def remove(folder):
    """Removes a fresh Debian; twice, since processes that are just ending may still write."""
    for _ in range(2):
        if succeeds("rm", "-rf", "--one-file-system", folder):
            return
        time.sleep(1)


def in_namespaces(program, arguments, keep):
    """Runs a program again, in a mount and a process namespace of its own and with a folder for its
    roots, which is its last argument; returns its status."""
    folder = tempfile.mkdtemp()
    inhabitant = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child",
         sys.executable, program, *arguments, INSIDE, folder])
    try:
        return inhabitant.wait()
    finally:
        # This is the namespace's first process: when it ends, all others end and the mounts vanish.
        inhabitant.send_signal(signal.SIGKILL)
        inhabitant.wait()
        if keep:
            print(f"The roots are kept in {folder}")
        else:
            remove(folder)


def add_options(parser):
    """The options of every program that makes a fresh Debian."""
    parser.add_argument(
        "--mirror", metavar="URL", default=os.environ.get("MIRROR"),
        help="the Debian mirror, if not the one this machine's apt uses (default: MIRROR)")
    parser.add_argument(
        "--keep", action="store_true", default=os.environ.get("KEEP") == "1",
        help="leave the roots for a look (default: KEEP=1)")
    parser.add_argument(INSIDE, metavar="FOLDER", type=pathlib.Path, help="what it calls itself with")
