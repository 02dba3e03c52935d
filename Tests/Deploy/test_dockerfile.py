# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The reader of Dockerfiles, and what deploy/Dockerfile says without being executed.

`make check-image` executes it; image_build.py says what stands in for Docker there."""

import pathlib
import re
import sys
import tempfile
import unittest

from manifests import CHART, ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import dockerfile  # noqa: E402
import image_build  # noqa: E402
import package_lists  # noqa: E402

DEPLOY = ROOT / "deploy"
IMAGE_LABELS = ("title", "description", "version", "revision", "source", "licenses")


def only(text):
    """The one instruction of a stage that has it."""
    [instruction] = dockerfile.parse(f"FROM debian AS one\n{text}").stages[0].instructions
    return instruction


class Reader(unittest.TestCase):
    def test_an_instruction_goes_on_over_lines_and_comments(self):
        run = only("RUN one \\\n    # why\n    && two\n")
        self.assertEqual((run.words, run.is_shell, run.line), (("one && two",), True, 2))

    def test_words_in_brackets_need_no_shell(self):
        self.assertEqual(only('CMD ["run", "--config", "a b"]').words, ("run", "--config", "a b"))
        self.assertFalse(only('RUN ["true"]').is_shell)

    def test_pairs_may_be_quoted(self):
        self.assertEqual(only('LABEL a="b c" d=e').words, (("a", "b c"), ("d", "e")))
        self.assertEqual(only("ARG COMMIT").words, (("COMMIT", None),))

    def test_a_file_of_another_stage_and_a_mount_of_the_context(self):
        self.assertEqual(only("COPY --from=build /a /b").options, {"from": "build"})
        self.assertEqual(
            only("RUN --mount=type=bind,source=deploy,target=/mnt ls").options["mount"], ("deploy", "/mnt"))

    def test_a_base_may_be_an_argument(self):
        read = dockerfile.parse("ARG BASE=debian:12\nFROM ${BASE} AS one\nFROM one AS two\n")
        self.assertEqual([stage.base for stage in read.stages], ["debian:12", "one"])

    def test_a_variable_without_a_value_is_an_error(self):
        self.assertEqual(dockerfile.expand("$A-${B}", {"A": "1", "B": ""}), "1-")
        for text in ("$C", "${A:-2}", "$$", "a$", "\\$A"):
            with self.subTest(text=text), self.assertRaises(dockerfile.DockerfileError):
                dockerfile.expand(text, {"A": "1"})

    def test_what_is_not_known_is_an_error_with_its_line(self):
        for text in (
                "ADD a b", "VOLUME /a", "HEALTHCHECK NONE", "SHELL [\"bash\"]", "ONBUILD RUN a",
                "EXPOSE 80", "MAINTAINER a", "run-it now", "COPY --chown=1 a b", "COPY --link a b",
                "RUN --network=none a", "RUN --mount=type=cache,target=/a b",
                "RUN --mount=type=bind,from=a,source=/,target=/a b",
                "RUN --mount=type=bind,source=a,target=/a --mount=type=bind,source=b,target=/b c",
                "RUN <<END", "ENV A b", "LABEL a", "CMD run", "ENTRYPOINT run", 'CMD ["a"', "CMD [1]",
                "COPY a", "USER", "USER a b", "RUN a \\", "RUN a \\\n\n  b", "FROM debian", "RUN --bad a"):
            with self.subTest(text=text), self.assertRaisesRegex(dockerfile.DockerfileError, "line [23]"):
                dockerfile.parse(f"FROM debian AS one\n{text}\n")

    def test_the_file_as_a_whole_has_rules_too(self):
        for text in ("", "ARG A=1\n", "RUN a\n", "FROM $A AS one\n", "# syntax=docker/dockerfile:1\n",
                     "# escape=`\n", "FROM a AS one\nFROM b AS one\n"):
            with self.subTest(text=text), self.assertRaises(dockerfile.DockerfileError):
                dockerfile.parse(text)


class Context(unittest.TestCase):
    def test_the_last_pattern_that_names_a_file_decides(self):
        patterns = dockerfile.ignore_patterns("# why\n*\n!a\na/b\n!c/d\n")
        kept = [path for path in ("a", "a/x", "a/b", "a/b/x", "c", "c/d", "c/e", "ab")
                if not dockerfile.is_ignored(path, patterns)]
        self.assertEqual(kept, ["a", "a/x", "c/d"])

    def test_other_patterns_are_an_error(self):
        for text in ("**/a", "*.txt", "a?", "/a", "a/"):
            with self.subTest(text=text), self.assertRaises(dockerfile.DockerfileError):
                dockerfile.ignore_patterns(text)


class Copy(unittest.TestCase):
    def copied(self, sources, destination, workdir="/source"):
        """The files of a root after COPY, from a folder that has a file, and a folder with another."""
        with tempfile.TemporaryDirectory() as folder:
            origin, root = pathlib.Path(folder, "origin"), pathlib.Path(folder, "root")
            (origin / "Sources/App").mkdir(parents=True)
            (root / "source").mkdir(parents=True)
            for name in ("LICENSE", "Sources/App/a.swift"):
                (origin / name).touch()
            image_build.copy_files(origin, sources, destination, root, workdir)
            return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    def test_a_folder_is_copied_as_what_is_in_it(self):
        self.assertEqual(self.copied(["Sources"], "Sources"), ["source/Sources/App/a.swift"])
        self.assertEqual(self.copied(["Sources"], "./"), ["source/App/a.swift"])

    def test_a_file_goes_into_a_folder_or_gets_a_name(self):
        self.assertEqual(self.copied(["LICENSE"], "./"), ["source/LICENSE"])
        self.assertEqual(self.copied(["LICENSE"], "/usr/bin/"), ["usr/bin/LICENSE"])
        self.assertEqual(self.copied(["/LICENSE"], "copyright"), ["source/copyright"])
        self.assertEqual(self.copied(["LICENSE"], "/source"), ["source/LICENSE"])

    def test_what_docker_refuses_is_refused(self):
        for sources, destination in ((["missing"], "./"), (["LICENSE", "Sources"], "a"), (["*"], "./")):
            with self.subTest(sources=sources), self.assertRaises(ValueError):
                self.copied(sources, destination)


class Image(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.text = (DEPLOY / "Dockerfile").read_text()
        cls.read = dockerfile.parse(cls.text)
        cls.patterns = dockerfile.ignore_patterns((DEPLOY / "Dockerfile.dockerignore").read_text())

    def instructions(self, stage, name):
        """Those of a stage and of the stages that it is made from, the base's first."""
        found = self.read.stage(stage)
        if not found:
            return []
        return self.instructions(found.base, name) + [
            each for each in found.instructions if each.name == name]

    def test_the_context_has_each_file_that_is_copied(self):
        sources = [word for stage in self.read.stages for each in stage.instructions
                   if each.name == "COPY" and "from" not in each.options for word in each.words[:-1]]
        self.assertIn("Sources", sources)
        for source in sources:
            with self.subTest(source=source):
                self.assertTrue((ROOT / source).exists())
                self.assertFalse(dockerfile.is_ignored(source, self.patterns))
        for name in (".git/config", ".build/a", "docs/a.md", "deploy/lamplighter.example.yaml", "AuthKey.p8"):
            self.assertTrue(dockerfile.is_ignored(name, self.patterns), name)

    def test_the_simulators_image_has_the_worker_that_its_demo_starts(self):
        copied = {each.words: each.options.get("from") for each in self.instructions("lab", "COPY")}
        for program, stage in (("lamplighter", "build"), ("lamplighter-lab", "build-lab")):
            self.assertEqual(copied[f"/usr/local/bin/{program}", "/usr/local/bin/"], stage)

    def test_it_runs_as_a_numbered_user_that_is_not_root(self):
        for stage in ("worker", "lab"):
            *_, user = self.instructions(stage, "USER")
            self.assertEqual(user.words, ("10001:10001",))

    def test_the_worker_is_the_default_and_is_stopped_by_sigterm(self):
        self.assertEqual(self.read.stages[-1].name, "worker")
        self.assertEqual([each.words for each in self.instructions("worker", "STOPSIGNAL")], [("SIGTERM",)])

    def test_it_has_the_labels_of_oci_and_the_version_of_the_program(self):
        labels = dict(pair for each in self.instructions("worker", "LABEL") for pair in each.words)
        self.assertEqual(set(labels), {f"org.opencontainers.image.{name}" for name in IMAGE_LABELS})
        arguments = dict(pair for each in self.instructions("worker", "ARG") for pair in each.words)
        source = (ROOT / "Sources/App/Entrypoint/Version.swift").read_text()
        self.assertIn(f'number = "{arguments["VERSION"]}"', source)
        self.assertIn(f"appVersion: {arguments['VERSION']}\n", (CHART / "Chart.yaml").read_text())

    def test_it_has_the_licences_of_what_is_linked_into_its_programs(self):
        for stage in ("worker", "lab"):
            copied = [each.words for each in self.instructions(stage, "COPY")]
            self.assertIn(("LICENSE", "NOTICES", "/usr/share/doc/lamplighter/"), copied)

    def test_every_package_has_one_version(self):
        for name in ("run", "build"):
            with self.subTest(list=name):
                packages = package_lists.read(name)
                for package in packages:
                    self.assertRegex(package, r"^[a-z0-9][a-z0-9+.-]+=[\w.+:~-]+$")
                names = [package.partition("=")[0] for package in packages]
                self.assertEqual(len(names), len(set(names)))
                self.assertLessEqual(set(package_lists.wanted(name)), set(names))
        # Nothing installs packages but from the lists.
        commands = [each.words[0] for stage in self.read.stages for each in stage.instructions
                    if each.name == "RUN"]
        for command in commands:
            self.assertNotRegex(command, r"\b(apt|apt-get|curl|wget)\b")

    def test_what_both_lists_have_is_of_one_version(self):
        run, build = (dict(each.split("=", 1) for each in package_lists.read(name))
                      for name in ("run", "build"))
        shared = set(run) & set(build)
        self.assertIn("librdkafka1", shared)
        self.assertEqual({name: run[name] for name in shared}, {name: build[name] for name in shared})

    def test_the_swift_packages_are_those_of_the_manifest(self):
        listed = dict(line.rsplit(" ", 1) for line in package_lists.read("swift"))
        manifest = (ROOT / "Package.swift").read_text().partition("\nlet package = ")[2]
        wanted = re.findall(r'\.package\(\s*url: "([^"]+)", exact: "([^"]+)"', manifest)
        self.assertGreaterEqual(len(wanted), 5)
        for url, version in wanted:
            self.assertEqual(listed.get(url), version, "run make refresh-packages")


