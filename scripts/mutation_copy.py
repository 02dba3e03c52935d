# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""A private copy of the program: is kept up to date, is built, and runs its tests."""

import contextlib
import copy
import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from command_line import ROOT
from mutations import FOLDER

# As `make build-tests` does, whose files it begins with.
BUILD = ["swift", "build", "--disable-index-store", "-debug-info-format", "none", "--build-tests", "--quiet"]
RUNNER = [".build/debug/lamplighterPackageTests.xctest", "--testing-library", "swift-testing",
          "--no-parallel"]
# Builds only the named test targets and their dependencies: others would be linked again for each
# mutation and never run.
MANIFEST = """
var reached: Set<String> = [%s]
var unread = Array(reached)
while let name = unread.popLast() {
    for dependency in package.targets.first(where: { $0.name == name })?.dependencies ?? [] {
        if case .byNameItem(let name, _) = dependency, reached.insert(name).inserted {
            unread.append(name)
        }
    }
}
package.products = []
package.targets.removeAll { $0.type != .plugin && !reached.contains($0.name) }
"""
ENVIRONMENT = {
    # The number of the simulation's lives is 199: with 200 it also checks its coverage, which must
    # not count as noticing a mutation.
    "LAMPLIGHTER_SEEDS": "199",
    # A trap is recognised by its exit status; the program that would print its stack outlives the
    # test.
    "SWIFT_BACKTRACE": "enable=no",
}
FAILED = "✘".encode()
POLL_SECONDS = 0.02
# What a broken loop may allocate. A limit of the system's is no use: flat memory reserves more.
RESIDENT_BYTES_MAX = 4 << 30
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Stopped(Exception):
    """The whole program is to end."""


@dataclasses.dataclass(frozen=True)
class Run:
    """What became of one run of some tests."""

    passed: bool
    seconds: float
    # The test that failed or was running at the end; None if all passed.
    noticed_by: str | None = None


class Copy:
    """A folder with the program's sources, and what was built of them in .build.

    `stopping` is an event: once it is set, whatever runs here is killed. The amendment is appended
    to the manifest."""

    def __init__(self, folder, stopping, amendment=""):
        self.folder = folder
        self.log = folder / ".build/mutation.log"
        self.stopping = stopping
        self.manifest = (ROOT / "Package.swift").read_text()
        self.amendment = MANIFEST + amendment
        # The module of the latest mutation; another one there needs the least building.
        self.module = None
        self.environment = dict(
            os.environ, **ENVIRONMENT,
            # The copy may lie inside another repository, which must be ignored.
            GIT_CEILING_DIRECTORIES=str(folder.parent))

    def beside(self, number):
        """The same copy, for one more run of its tests at a time."""
        other = copy.copy(self)
        other.log = self.log.with_name(f"mutation-{number}.log")
        return other

    def refresh(self, changed=None):
        """Makes the copy what the repository is, but for files whose changed content is given. A
        file that is the same keeps its date, so that a kept copy is not built anew."""
        changed = changed or {}
        wanted = {*program_files(), *changed}
        # Without the one of its last build, the next would fetch and build all packages anew.
        kept = {*wanted, pathlib.Path("Package.resolved")}
        self.log.parent.mkdir(parents=True, exist_ok=True)
        for folder, folders, files in os.walk(self.folder):
            if pathlib.Path(folder) == self.folder:
                folders.remove(".build")
            for file in files:
                path = pathlib.Path(folder, file)
                if path.relative_to(self.folder) not in kept:
                    path.unlink()
        for path in wanted - {pathlib.Path("Package.swift")}:
            source, copied = ROOT / path, self.folder / path
            content = changed[path] if path in changed else source.read_bytes()
            if not copied.is_file() or copied.read_bytes() != content:
                copied.parent.mkdir(parents=True, exist_ok=True)
                copied.write_bytes(content)
            if path not in changed:
                shutil.copymode(source, copied)

    def build(self, test_targets):
        """Builds these test targets and what they reach; returns whether that succeeded."""
        amendment = self.amendment % ", ".join(f'"{target}"' for target in test_targets)
        manifest = self.folder / "Package.swift"
        if not manifest.is_file() or manifest.read_text() != self.manifest + amendment:
            manifest.write_text(self.manifest + amendment)
        return self._execute(BUILD) == 0

    def test(self, options, limit, environment=None):
        """Runs the tests that these options of the runner select, up to the first failure. A run
        that takes longer than `limit` seconds hangs, which counts as a failure."""
        began = time.monotonic()
        status = self._execute([*RUNNER, *options], limit, FAILED, environment)
        seconds = time.monotonic() - began
        log = self.logged()
        if status == 0 and FAILED.decode() not in log:
            has_run = re.search(r"Test run with [1-9]", log)
            return Run(True, seconds) if has_run else Run(False, seconds, "for want of any test")
        return Run(False, seconds, self._noticed_by(log, hangs=status is None))

    @contextlib.contextmanager
    def mutated(self, mutation):
        """Applies a mutation, and takes it back."""
        originals = {}
        try:
            for file, content in mutation.mutated(self.folder).items():
                originals[file] = (self.folder / file).read_bytes()
                (self.folder / file).write_text(content)
            self.module = mutation.module
            yield
        finally:
            for file, content in originals.items():
                (self.folder / file).write_bytes(content)

    def logged(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def complaints(self, count):
        """The lines of the log that say what is wrong; if there are none, its last ones."""
        lines = self.logged().splitlines()
        wrong = [line for line in lines if "error:" in line or FAILED.decode() in line]
        return wrong[:count] or lines[-count:]

    def _execute(self, command, limit=None, stops_at=None, environment=None):
        """Runs a command with its output in the log. Returns its exit status; None if it was killed
        at the limit, or for its memory. It ends early, too, when `stops_at` is in the log."""
        began = time.monotonic()
        with open(self.log, "wb") as log, open(self.log, "rb") as written:
            process = subprocess.Popen(
                command, cwd=self.folder, env={**self.environment, **(environment or {})},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            try:
                tail = b""
                while process.poll() is None:
                    if self.stopping.wait(POLL_SECONDS):
                        raise Stopped
                    # The bytes read before may end within a character.
                    tail = tail[-len(FAILED):] + written.read()
                    if stops_at and stops_at in tail:
                        return -signal.SIGKILL
                    if limit and time.monotonic() - began > limit:
                        return None
                    if resident_bytes(process.pid) > RESIDENT_BYTES_MAX:
                        return None
                return process.returncode
            finally:
                # The processes that a test has started are killed too.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    @staticmethod
    def _noticed_by(log, hangs):
        """The test that failed; or the one that was running when the process died or hung."""
        failed = re.search(r'✘[^T\n]*Test "([^"\n]*)"', log)
        if failed:
            return f'"{failed[1]}"'
        started = re.findall(r'◇[^T\n]*Test "([^"\n]*)" started', log)
        name = f'"{started[-1]}"' if started else "no test"
        return f"{name}, which does not end" if hangs else f"a trap in {name}"


def resident_bytes(pid):
    """The memory that a process uses; nothing once it has ended."""
    with contextlib.suppress(OSError):
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    return 0


def program_files():
    """The files of the program, tracked or not, by their paths below the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [pathlib.Path(name) for name in listed.split("\0") if name]
    return [path for path in [*paths, pathlib.Path("Package.resolved")] if (ROOT / path).is_file()]


def program_digest():
    """Changes with everything that is built, but not with the mutations."""
    digest = hashlib.sha256()
    for path in sorted(set(program_files())):
        is_built = path.parts[0] in ("Sources", "Tests") or path.name.startswith("Package.")
        if is_built and not path.is_relative_to(FOLDER):
            digest.update(f"{path}\0".encode() + (ROOT / path).read_bytes())
    return digest.hexdigest()
