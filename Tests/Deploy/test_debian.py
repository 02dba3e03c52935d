# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What deploy/debian says: the systemd unit, by systemd's own tools, and the maintainer scripts.

No service is started here; `make check-image` builds and installs the package."""

import gzip
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from fake_build import ENVIRONMENT, FakeBuild
from manifests import ROOT

FOLDER = ROOT / "deploy/debian"
UNIT = FOLDER / "lamplighter.service"
# What `systemd-analyze security` of Debian 12 rates the unit with, in tenths: 0 is best, 100 worst.
EXPOSURE_MAX = 14
# What the worker is left: a network, its threads' priorities, and what the unit's comments say.
LEFT = {
    "DeviceAllow", "IPAddressDeny", "PrivateMounts", "PrivateNetwork", "ProcSubset",
    "RestrictAddressFamilies_AF_INET_INET6", "RestrictAddressFamilies_AF_UNIX",
    "RootDirectoryOrRootImage", "SystemCallFilter_resources"}


def security(text, *options):
    """What `systemd-analyze security` says of a unit."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / UNIT.name
        path.write_text(text)
        return subprocess.run(
            ["systemd-analyze", "security", "--offline=true", *options, path],
            capture_output=True, text=True, check=False)


def exposed(text):
    """The names of what a unit leaves open."""
    found = json.loads(security(text, "--json=short").stdout)
    return {each["json_field"] for each in found if each.get("exposure")}


def complaints(text):
    """What `systemd-analyze verify` says of a unit, in a root that has what it starts."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        units = root / "usr/lib/systemd/system"
        shutil.copytree("/lib/systemd/system", units, symlinks=True)
        (units / UNIT.name).write_text(text)
        for program in re.findall(r"^Exec\w+=(\S+)", UNIT.read_text(), re.M):
            path = root / program.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy("/bin/true", path)
        done = subprocess.run(
            ["systemd-analyze", "verify", f"--root={root}", "--man=no", UNIT.name],
            capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if UNIT.name in line] + [
        f"ended with {done.returncode}"] * (done.returncode != 0)


class Unit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = UNIT.read_text()
        cls.settings = dict(re.findall(r"^(\w+)=(.*)$", cls.text, re.M))

    def test_systemd_accepts_the_unit(self):
        self.assertEqual(complaints(self.text), [])

    def test_a_mistake_in_the_unit_is_noticed(self):
        for old, new in (("Type=exec", "Type=exce"), ("RestartSec=5", "RestartSeconds=5"),
                         ("/usr/bin/lamplighter run", "/usr/bin/missing run")):
            with self.subTest(new=new):
                self.assertIn(old, self.text)
                self.assertNotEqual(complaints(self.text.replace(old, new)), [])

    def test_systemd_rates_the_unit_as_well_as_it_was_rated(self):
        rated = security(self.text, f"--threshold={EXPOSURE_MAX}")
        self.assertEqual(rated.returncode, 0, rated.stdout)
        self.assertLessEqual(exposed(self.text), LEFT)

    def test_every_protection_that_is_taken_away_is_noticed(self):
        protections = self.text.partition("UMask=")[2].partition("[Install]")[0]
        names = re.findall(r"^(\w+)=", f"UMask={protections}", re.M)
        self.assertGreater(len(names), 20)
        # systemd-analyze does not rate these two.
        for name in {"User", *names} - {"LimitCORE", "SystemCallErrorNumber"}:
            with self.subTest(name=name):
                changed = re.sub(rf"^{name}=.*\n", "", self.text, flags=re.M)
                self.assertNotEqual(changed, self.text)
                self.assertTrue(exposed(changed) - LEFT)

    def test_systemd_waits_longer_than_the_worker_drains(self):
        page = (ROOT / "docs/configuration.md").read_text()
        drain = re.search(r"\| `delivery\.shutdownTimeout`[^|]*\| `(\d+)s` \|", page)[1]
        self.assertGreaterEqual(int(self.settings["TimeoutStopSec"]), int(drain) + 5)
        self.assertEqual(self.settings["KillSignal"], "SIGTERM")

    def test_what_another_start_cannot_mend_is_not_started_again(self):
        page = (ROOT / "docs/commands.md").read_text()
        mended = re.findall(r"^\| (\d+) \|.*\| correct it \|$", page, re.M)
        # 65 is an input of the checker's, which is not this program.
        self.assertEqual(self.settings["RestartPreventExitStatus"].split(),
                         [code for code in mended if code != "65"])

    def test_a_worker_is_named_for_its_machine_in_its_group(self):
        name = re.search(r"^Environment=LAMPLIGHTER_KAFKA_GROUPINSTANCEID=(.*)$", self.text, re.M)[1]
        # The machine's name, for people, and its ID, since two may have one name.
        self.assertEqual(name, "%H-%m")
        # What Kafka takes: a host's name has up to 64 characters, the ID 32 digits.
        page = (ROOT / "docs/configuration.md").read_text()
        most = re.search(r"\| `kafka\.groupInstanceID` \|[^|]*\| 1 to (\d+) of", page)[1]
        self.assertLessEqual(64 + len("-") + 32, int(most))

    def test_the_variables_of_the_unit_are_keys(self):
        page = (ROOT / "docs/configuration.md").read_text().lower()
        for name in re.findall(r"LAMPLIGHTER_(\w+)=", self.text):
            self.assertIn(f"`{name.lower().replace('_', '.')}`", page)


class Package(unittest.TestCase):
    """A package of a small program, made by scripts/build-deb.py"""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="lamplighter-deb-")
        cls.addClassCleanup(folder.cleanup)
        build = FakeBuild(folder.name)
        subprocess.run(
            ["python3", "scripts/build-deb.py", "--program", build.programs / "lamplighter",
             "--output", folder.name], cwd=build.root, check=True, capture_output=True,
            env={**ENVIRONMENT, "DEBFULLNAME": "a", "DEBEMAIL": "a@example.com"})
        [cls.package] = pathlib.Path(folder.name).glob("*.deb")
        cls.root = pathlib.Path(folder.name) / "installed"
        subprocess.run(["dpkg-deb", "--extract", cls.package, cls.root], check=True)
        cls.doc = cls.root / "usr/share/doc/lamplighter"

    def test_has_the_licences_of_what_is_linked_into_its_program(self):
        notices = gzip.decompress((self.doc / "NOTICES.gz").read_bytes())
        self.assertEqual(notices, (ROOT / "NOTICES").read_bytes())
        self.assertIn("NOTICES.gz", (self.doc / "copyright").read_text())

    def test_has_the_pages_of_docs_and_the_schemas_that_they_link_to(self):
        pages = {page.name for page in (ROOT / "docs").glob("*.md")}
        self.assertLessEqual(pages, {page.name for page in self.doc.iterdir()})
        linked = set(re.findall(r"\]\((schemas/[\w.-]+)\)", (self.doc / "records.md").read_text()))
        self.assertGreater(len(linked), 4)
        for path in linked:
            self.assertTrue((self.doc / path).is_file(), path)

    def test_depends_on_the_libraries_that_its_program_loads(self):
        told = subprocess.run(
            ["dpkg-deb", "--field", self.package, "Depends"], check=True, capture_output=True, text=True)
        self.assertIn("zlib1g", told.stdout)


class Scripts(unittest.TestCase):
    def test_they_are_shell(self):
        for name in ("postinst", "prerm", "postrm"):
            path = FOLDER / name
            subprocess.run(["sh", "-n", path], check=True)
            self.assertRegex(path.read_text(), r"\A#!/bin/sh\n")
            self.assertTrue(path.stat().st_mode & 0o100, name)

    def test_the_configuration_is_one_of_the_examples(self):
        self.assertIn("/etc/lamplighter/lamplighter.yaml", UNIT.read_text())
        builder = (ROOT / "scripts/build-deb.py").read_text()
        self.assertIn('"etc/lamplighter/lamplighter.yaml"', builder)
        self.assertIn("deploy/lamplighter.example.yaml", builder)
