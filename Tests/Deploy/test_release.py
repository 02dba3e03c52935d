# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""`make release`, but for the builds: scripts/release.py with two small programs."""

import json
import pathlib
import re
import subprocess
import tarfile
import tempfile
import unittest

from fake_build import FakeBuild


class Release(unittest.TestCase):
    """A release"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lamplighter-release-")
        self.addCleanup(folder.cleanup)
        self.build = FakeBuild(folder.name)
        self.files = self.build.output

    def made(self, *options):
        """Makes it; returns the files by their names without the version."""
        status, told = self.build.release(*options)
        self.assertEqual(status, 0, told)
        return {re.sub(r"0\.1\.0(\+\w{12})?", "V", path.name): path for path in self.files.iterdir()}

    def test_has_its_parts_with_their_checksums(self):
        package = self.build.root.parent / "lamplighter_0.1.0_amd64.deb"
        package.write_bytes(b"!<arch>\n")
        files = self.made("--deb", package)
        machine = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()
        self.assertEqual(
            sorted(files), sorted([
                "SHA256SUMS", f"lamplighter-V-linux-{machine}.tar.gz", "lamplighter-V-image.tar.gz",
                "lamplighter-V-sbom.cdx.json", "lamplighter-V-source.tar.gz", "lamplighter_V_amd64.deb"]))
        subprocess.run(
            ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=self.files, check=True)
        self.assertEqual(len(files["SHA256SUMS"].read_text().splitlines()), len(files) - 1)

    def test_has_programs_papers_and_examples_in_its_archive(self):
        machine = next(path for path in self.made().values() if "linux" in path.name)
        folder = machine.name.partition("-linux")[0]
        with tarfile.open(machine) as tar:
            entries = {entry.name.removeprefix(f"{folder}/"): entry for entry in tar}
            program = tar.extractfile(entries["bin/lamplighter"]).read()
        for name in ("bin/lamplighter", "bin/lamplighter-lab", "README.md", "LICENSE", "NOTICES",
                     "docs/delivery.md", "deploy/lamplighter.example.yaml", "sbom.cdx.json"):
            self.assertIn(name, entries)
        self.assertEqual(entries["bin/lamplighter"].mode, 0o755)
        self.assertEqual(entries["README.md"].mode, 0o644)
        facts = {(each.mtime, each.uid, each.uname) for each in entries.values()}
        self.assertEqual(facts, {(1700000000, 0, "root")})
        # It can still be run, and is smaller by what a debugger reads.
        path = self.build.root.parent / "program"
        path.write_bytes(program)
        path.chmod(0o755)
        self.assertIn(b"lamplighter 0.1.0", subprocess.run([path], capture_output=True, check=True).stdout)
        self.assertLess(len(program), (self.build.programs / "lamplighter").stat().st_size)

    def test_is_the_same_when_it_is_made_again(self):
        before = {name: path.read_bytes() for name, path in self.made().items()}
        for path in self.build.root.rglob("*.md"):
            path.touch()
        (self.build.root / "README.md").chmod(0o600)
        after = {name: path.read_bytes() for name, path in self.made().items()}
        self.assertEqual(before, after)

    def test_has_the_commit_in_its_version_until_a_tag_names_it(self):
        commit = self.build.git("rev-parse", "--short=12", "HEAD")
        names = {path.name for path in self.made().values()}
        self.assertIn(f"lamplighter-0.1.0+{commit}-image.tar.gz", names)
        self.build.git("tag", "v0.1.0")
        files = self.made()
        self.assertIn("lamplighter-0.1.0-image.tar.gz", {path.name for path in files.values()})
        document = json.loads(files["lamplighter-V-sbom.cdx.json"].read_text())
        self.assertEqual(document["metadata"]["component"]["version"], "0.1.0")
        self.assertEqual(document["metadata"]["timestamp"], "2023-11-14T22:13:20Z")

    def test_has_what_the_image_is_made_by(self):
        with tarfile.open(self.made()["lamplighter-V-image.tar.gz"]) as tar:
            names = {name.partition("/")[2] for name in tar.getnames()}
        self.assertLessEqual({"deploy/Dockerfile", "deploy/Dockerfile.dockerignore"}, names)
        text = (self.build.root / "deploy/Dockerfile").read_text()
        # Each file that is copied by its name, or mounted from deploy.
        for path in re.findall(r"(?:deploy|scripts)/[\w.-]+\.(?:sh|txt)|(?<=/mnt/)[\w.-]+\.(?:sh|txt)", text):
            self.assertTrue({path, f"deploy/{path}"} & names, f"{path} is not in the recipe")

    def test_has_a_released_version_only_where_a_tag_names_it(self):
        self.refused("no tag v0.1.0 names this commit", "--released-version")
        self.build.git("tag", "v0.2.0")
        self.refused("no tag v0.1.0 names this commit", "--released-version")
        self.build.git("tag", "v0.1.0")
        self.assertEqual(self.build.release("--released-version"), (0, "0.1.0\n"))
        self.assertFalse(self.files.exists())

    def refused(self, complaint, *options):
        status, told = self.build.release(*options)
        self.assertEqual(status, 1, told)
        self.assertIn(complaint, told)
        self.assertFalse(self.files.exists())

    def test_is_refused_for_a_tree_with_changes(self):
        (self.build.root / "docs/new.md").write_text("new\n")
        self.refused("docs/new.md")
        self.build.commit()
        (self.build.root / "README.md").write_text("changed\n")
        self.refused("README.md")

    def test_is_refused_for_programs_of_another_commit(self):
        self.build.build("0123456789ab")
        self.refused("not of")

    def test_is_refused_without_a_section_in_the_changelog(self):
        path = self.build.root / "CHANGELOG.md"
        path.write_text(path.read_text().replace("## [0.1.0]", "## [0.0.9]"))
        self.build.commit()
        self.refused("CHANGELOG.md has no section [0.1.0]")

    def test_is_refused_when_the_notices_miss_a_component(self):
        path = self.build.root / "NOTICES"
        path.write_text(path.read_text().replace("\nYams  ", "\nJams  "))
        self.build.commit()
        self.refused("NOTICES does not name Yams")


if __name__ == "__main__":
    unittest.main()
