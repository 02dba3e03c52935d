# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""A repository with the files of this one, and a build of two small programs, so that a release can be
tried in seconds. The programs print their version, and are linked with zlib alone, without its headers."""

import json
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("lamplighter", "lamplighter-lab")
# What a release is made of, or made by.
KEPT = ("deploy/", "docs/", "scripts/", "Sources/App/Entrypoint/", "Makefile", "Package.swift", ".gitignore",
        "README.md", "LICENSE", "NOTICES", "CHANGELOG.md", "SECURITY.md")
SOURCE = """
#include <stdio.h>
const char *zlibVersion(void);
int main(void) { printf("%s %s (%s)\\nzlib %s\\n", NAME, "0.1.0", COMMIT, zlibVersion()); return 0; }
"""
LICENCE = "MIT\n\nPermission is hereby granted, free of charge, to any person\n"
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"},
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_DATE": "@1700000000 +0000", "GIT_COMMITTER_DATE": "@1700000000 +0000"}


class FakeBuild:
    def __init__(self, folder):
        self.root = pathlib.Path(folder) / "repository"
        self.output = pathlib.Path(folder) / "release"
        self.programs = self.root / ".build/release"
        names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                               check=True, capture_output=True, text=True).stdout.splitlines()
        for name in names:
            if name.startswith(KEPT) and (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.root / name)
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()

    def git(self, *words):
        done = subprocess.run(
            ["git", *words], cwd=self.root, env=ENVIRONMENT, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=all")
        self.build(self.git("rev-parse", "--short=12", "HEAD"))

    def build(self, commit):
        """Builds the programs, with what the Swift package manager leaves beside them."""
        self.programs.mkdir(parents=True, exist_ok=True)
        checkout = self.root / ".build/checkouts/Yams"
        checkout.mkdir(parents=True, exist_ok=True)
        (checkout / "LICENSE").write_text(LICENCE)
        module = self.programs / "Yams.build"
        module.mkdir(exist_ok=True)
        (module / "sources").write_text(f"{checkout}/Sources/Yams/Node.swift\n")
        pin = {"identity": "yams", "location": "https://github.com/jpsim/Yams",
               "state": {"revision": "0" * 40, "version": "6.2.2"}}
        (self.root / "Package.resolved").write_text(json.dumps({"pins": [pin]}))
        (self.programs / "main.c").write_text(SOURCE)
        for name in PROGRAMS:
            product = self.programs / f"{name}.product"
            product.mkdir(exist_ok=True)
            (product / "Objects.LinkFileList").write_text(f"{module}/Node.swift.o\n")
            subprocess.run(
                ["cc", "-g", f'-DNAME="{name}"', f'-DCOMMIT="{commit}"', "main.c", "-o", name,
                 "-l:libz.so.1"],
                cwd=self.programs, check=True)

    def release(self, *options):
        """Runs the repository's own release.py; returns its exit status and what it says."""
        done = subprocess.run(
            ["python3", "scripts/release.py", "--programs", self.programs, "--output", self.output, *options],
            cwd=self.root, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)
        return done.returncode, done.stdout
