# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The Debian package: installed in a fresh Debian 12, tried there, booted with systemd, and purged."""

import os
import re
import shutil
import subprocess

from command_line import ROOT, announce, fail
from container import PLACE, output_or_fail
from debian_root import SYSTEM_PATH, DebianRoot, output, proxies, run

# What lintian asks of packages that are part of Debian: a bug there that asks for them.
NOT_OURS = "initial-upload-closes-no-bugs"
SECONDS_TO_RUN = 120
# Runs the check once the system is up, then switches the system off.
CHECK_UNIT = f"""[Unit]
After=dbus.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'check-service.sh >{PLACE}/service.log 2>&1; echo $? >{PLACE}/service.status; \\
    systemctl --no-block poweroff'
[Install]
WantedBy=multi-user.target
"""
POLICY = "usr/sbin/policy-rc.d"


def build(program, folder):
    """Builds the package of a program, and looks at it from outside."""
    for old in folder.glob("*.deb"):
        old.unlink()
    run(ROOT / "scripts/build-deb.py", "--program", program, "--output", folder)
    [package] = folder.glob("*.deb")
    for line in output("dpkg-deb", "--contents", package).splitlines():
        if not re.match(r"[-d]rw[-x]r-[-x]r-[-x] root/root ", line):
            fail(f"odd rights in the package: {line}")
    announce("lintian", package.name)
    run("lintian", "--fail-on", "error,warning", "--suppress-tags", NOT_OURS, package)
    return package


class Installed:
    """A fresh Debian with the package, used as the package's user."""

    def __init__(self, package, base, root, simulation):
        self.root = root
        self.simulation = simulation
        run("cp", "--archive", "--one-file-system", f"{base.root}/.", root)
        self.debian = DebianRoot(root, base.debian.means)
        self.debian.mount_system()
        # Nothing is started in a chroot.
        (root / POLICY).write_text("#!/bin/sh\nexit 101\n")
        (root / POLICY).chmod(0o755)
        shutil.copy2(package, root / "root")
        self._apt("update", "--quiet=2")
        self.install(f"/root/{package.name}")

    def _apt(self, *words):
        announce("apt-get", *words)
        environment = [f"PATH={SYSTEM_PATH}", "DEBIAN_FRONTEND=noninteractive", *proxies()]
        run(*self.debian.command("apt-get", *words, environment=environment), stdout=subprocess.DEVNULL)

    def install(self, *packages):
        self._apt("install", "--quiet=2", "--yes", "--no-install-recommends", *packages)

    def configure(self):
        """Takes the simulators' files and the configuration that names them."""
        folder = self.root / "etc/lamplighter"
        for name in ("lamplighter.yaml", "ca.pem", "AuthKey.p8"):
            shutil.copy(self.simulation.run / name, folder / name)
            output_or_fail(["chroot", self.root, "chgrp", "lamplighter", f"/etc/lamplighter/{name}"])
            (folder / name).chmod(0o640)

    def output(self, *words):
        user = "lamplighter"
        return output_or_fail(self.debian.command(
            "setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--no-new-privs",
            "--bounding-set=-all", "--inh-caps=-all", *words, environment=["PATH=/usr/bin:/usr/sbin"]))

    def boot(self):
        """Boots it with systemd-nspawn, which shares this machine's network, for check-service.sh."""
        self.install("systemd-sysv", "dbus")
        (self.root / POLICY).unlink()
        shutil.copy(ROOT / "scripts/check-service.sh", self.root / "usr/bin")
        (self.root / "etc/systemd/system/check.service").write_text(CHECK_UNIT)
        run(*self.debian.command("systemctl", "--quiet", "enable", "check.service"))
        for name in ("proc", "dev"):
            run("umount", "--recursive", self.root / name)
        announce("systemd-nspawn", "--boot")
        booted = subprocess.run(
            ["timeout", str(SECONDS_TO_RUN), "systemd-nspawn", f"--directory={self.root}", "--boot",
             "--register=no", "--keep-unit", "--link-journal=no", "--quiet",
             f"--bind={self.simulation.folder}:{PLACE}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        status, log = (self.simulation.folder / f"service.{name}" for name in ("status", "log"))
        print(log.read_text() if log.exists() else booted.stdout.decode(errors="replace"), end="")
        if not status.exists() or status.read_text().strip() != "0":
            fail("the service of the package failed")
        self.debian.mount_system()

    def purge(self):
        """Removes the package; what it has made must be gone, but for the keys."""
        self._apt("purge", "--quiet=2", "--yes", "lamplighter")
        left = {os.path.join(folder, name) for place in ("etc/lamplighter", "var/lib/lamplighter",
                                                         "usr/share/doc/lamplighter")
                for folder, _, names in os.walk(self.root / place) for name in names}
        expected = {str(self.root / "etc/lamplighter" / name) for name in ("ca.pem", "AuthKey.p8")}
        if left != expected:
            fail(f"after purge there are {sorted(left)}")
