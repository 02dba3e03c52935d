# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The workflows of .github: held to GitHub's schema, as the package check-jsonschema has it, and to the rights that each
job needs. The scripts of the release's jobs run here, with stand-ins for Docker, gh and a registry.

No GitHub and no registry is asked: whether a release comes of a tag, nobody has seen."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import dockerfile
import jsonschema
import manifests
import yaml
from fake_build import ENVIRONMENT, FakeBuild
from manifests import ROOT

FOLDER = ROOT / ".github/workflows"
# Who may write what; whoever is not named reads sources at most.
RIGHTS = {
    "image": {"packages"}, "publish-image": {"packages", "id-token", "attestations"},
    "chart": {"packages", "id-token", "attestations"}, "release": {"contents", "id-token", "attestations"}}
REGISTRY = "ghcr.io/example"
VERSION = "0.1.0"
DIGEST = f"sha256:{'a' * 64}"
# What GitHub puts in for ${{ … }} in the variables of a step.
CONTEXT = {
    "needs.names.outputs.registry": REGISTRY, "needs.names.outputs.version": VERSION, "github.token": "secret-token"}
# Prints what the real one would, and notes its words and what it is told.
STAND_IN = r"""#!/bin/bash
{ printf '%s' "${0##*/}"; printf ' %s' "$@"; echo; } >>"$CALLS"
[[ " $* " != *" --password-stdin "* ]] || [ "$(cat)" = secret-token ] || exit 1
while [ $# -gt 0 ]; do
    [ "$1" != --metadata-file ] || echo '{"containerimage.digest": "DIGEST"}' >"$2"
    [ "$1" != inspect ] || echo '{"digest": "DIGEST"}'
    shift
done
""".replace("DIGEST", DIGEST)
HELM = r"""#!/bin/bash
case $1 in
    push) echo "Pushed: $3/lamplighter" >&2; echo "Digest: DIGEST" >&2; shift 0 ;;
    registry) [ "$(cat)" = secret-token ] || exit 1 ;;
    *) exec "$REAL_HELM" "$@" ;;
esac
{ printf 'helm'; printf ' %s' "$@"; echo; } >>"$CALLS"
""".replace("DIGEST", DIGEST)


def document(name):
    """A workflow. YAML 1.1, which Python reads, has `on` as a truth."""
    read = yaml.safe_load((FOLDER / name).read_text())
    return {("on" if key is True else key): value for key, value in read.items()}


def problems(workflow):
    package = pathlib.Path(importlib.util.find_spec("check_jsonschema").origin).parent
    schema = json.loads((package / "builtin_schemas/vendor/github-workflows.json").read_text())
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in jsonschema.Draft7Validator(schema).iter_errors(workflow)]


class Workflows(unittest.TestCase):
    """Each workflow"""

    NAMES = sorted(path.name for path in FOLDER.glob("*.yml"))

    def test_is_valid_by_the_schema(self):
        self.assertEqual(self.NAMES, ["ci.yml", "release.yml"])
        for name in self.NAMES:
            with self.subTest(name):
                self.assertEqual(problems(document(name)), [])

    def test_is_refused_by_the_schema_with_a_breakage(self):
        for change in ({"on": {"tag": ["v*"]}}, {"permissions": {"package": "write"}}, {"jobs": {"a": {"steps": []}}}):
            with self.subTest(change):
                self.assertTrue(problems({**document("release.yml"), **change}))

    def test_has_scripts_that_bash_can_read_and_that_take_no_text_from_github(self):
        for name in self.NAMES:
            for job in document(name)["jobs"].values():
                for step in job["steps"]:
                    if script := step.get("run"):
                        with self.subTest(workflow=name, step=step["name"]):
                            subprocess.run(["bash", "-n"], input=script, text=True, check=True)
                            # A name of a tag, put into a script, would be part of it.
                            self.assertNotIn("${{", script)

    def test_keeps_no_right_to_push_in_the_checkout(self):
        for name in self.NAMES:
            for job in document(name)["jobs"].values():
                for step in job["steps"]:
                    if step.get("uses", "").startswith("actions/checkout@"):
                        self.assertIs(step["with"]["persist-credentials"], False)


class Release(unittest.TestCase):
    """The workflow of a release"""

    def setUp(self):
        self.workflow = document("release.yml")
        self.jobs = self.workflow["jobs"]

    def test_gives_each_job_the_rights_that_it_needs_and_no_other(self):
        self.assertEqual(self.workflow["permissions"], {})
        for name, job in self.jobs.items():
            with self.subTest(name):
                rights = job["permissions"]
                self.assertLessEqual(set(rights.values()), {"read", "write"})
                self.assertEqual({each for each in rights if rights[each] == "write"}, RIGHTS.get(name, set()))
                self.assertLessEqual({each for each in rights if rights[each] == "read"}, {"contents"})

    def test_names_nothing_before_everything_was_tried(self):
        def before(name):
            needs = self.jobs[name].get("needs", [])
            needs = [needs] if isinstance(needs, str) else needs
            return set(needs).union(*map(before, needs))

        self.assertLessEqual({"names", "files", "try-files", "image"}, before("publish-image"))
        self.assertIn("publish-image", before("chart"))
        self.assertEqual(before("release"), set(self.jobs) - {"release"})

    def test_makes_each_image_for_both_machines_on_their_own_kind(self):
        read = dockerfile.parse((ROOT / "deploy/Dockerfile").read_text())
        made = set()
        for each in self.jobs["image"]["strategy"]["matrix"]["include"]:
            self.assertIsNotNone(read.stage(each["target"]))
            self.assertEqual(each["runner"].endswith("-arm"), each["machine"] == "arm64")
            made.add((each["image"], each["machine"]))
        images = self.jobs["publish-image"]["strategy"]["matrix"]["image"]
        self.assertEqual(made, {(image, machine) for image in images for machine in ("amd64", "arm64")})

    def test_attests_images_chart_and_files(self):
        attested = {name: [step["with"] for step in job["steps"] if "/attest-" in step.get("uses", "")]
                    for name, job in self.jobs.items()}
        self.assertEqual({name for name, found in attested.items() if found}, {"publish-image", "chart", "release"})
        provenance, bill = attested["release"]
        self.assertEqual(provenance["subject-path"], "run/release/*")
        self.assertIn("sbom.cdx.json", bill["sbom-path"])


class DryRun(unittest.TestCase):
    """The scripts of the release's jobs, one after the other"""

    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="lamplighter-workflow-")))
        self.folder, self.calls = folder, folder / "calls"
        self.root = FakeBuild(folder).root
        self.git = lambda *words: subprocess.run(["git", *words], cwd=self.root, env=ENVIRONMENT, check=True)
        self.git("tag", f"v{VERSION}")
        (folder / "bin").mkdir()
        for name, text in (("docker", STAND_IN), ("gh", STAND_IN), ("helm", HELM)):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)

    def run_job(self, name, matrix=None, root=None):
        """Runs the scripts of a job; returns the commands that stand-ins were given, and the outputs of the job."""
        job = document("release.yml")["jobs"][name]
        context = {**CONTEXT, **{f"matrix.{key}": value for key, value in (matrix or {}).items()}}

        def expanded(variables):
            return {key: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: context[found[1]], text)
                    for key, text in variables.items()}

        self.calls.write_text("")
        output = self.folder / "output"
        output.write_text("")
        environment = {
            **ENVIRONMENT, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CALLS": str(self.calls),
            "REAL_HELM": str(manifests.cluster_program(manifests.HELM)), "GITHUB_OUTPUT": str(output),
            "GITHUB_REF_NAME": f"v{VERSION}", "GITHUB_REPOSITORY": "Example/lamplighter", "GITHUB_ACTOR": "somebody",
            "GITHUB_REPOSITORY_OWNER": "Example", "GITHUB_SERVER_URL": "https://github.com",
            "RUNNER_TEMP": str(self.folder / "temp"), **expanded(job.get("env", {}))}
        (self.folder / "temp").mkdir(exist_ok=True)
        for step in job["steps"]:
            if script := step.get("run"):
                # As GitHub starts it where the shell is bash.
                done = subprocess.run(
                    ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=root or self.root,
                    env={**environment, **expanded(step.get("env", {}))}, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, f"{step['name']}: {done.stdout}{done.stderr}")
                self.assertNotIn("secret-token", done.stdout + done.stderr + self.calls.read_text())
        return self.calls.read_text().splitlines(), dict(line.split("=", 1) for line in output.read_text().splitlines())

    def test_names_the_version_and_a_registry_in_small_letters(self):
        self.assertEqual(self.run_job("names")[1], {"version": VERSION, "registry": REGISTRY})
        for tag in (["tag", "--delete", f"v{VERSION}"], ["tag", "v0.2.0"]):
            self.git(*tag)
            with self.assertRaisesRegex(AssertionError, "no tag v0.1.0 names this commit"):
                self.run_job("names")

    def test_builds_tries_and_pushes_images_with_arguments_that_the_dockerfile_has(self):
        text = (ROOT / "deploy/Dockerfile").read_text()
        for matrix in document("release.yml")["jobs"]["image"]["strategy"]["matrix"]["include"]:
            with self.subTest(matrix):
                calls, _ = self.run_job("image", matrix)
                create, tried, run, login, pushed = calls
                self.assertEqual(create, "docker buildx create --use")
                for each in (tried, pushed):
                    self.assertIn(f"--file deploy/Dockerfile --target {matrix['target']} ", each)
                    for argument in re.findall(r"--build-arg (\w+)=\S", each):
                        self.assertRegex(text, rf"(?m)^ARG {argument}=")
                    self.assertNotIn("-dirty", each)
                self.assertIn("--read-only", run)
                self.assertTrue(run.endswith(f" tried {matrix['command']}"), run)
                self.assertEqual(login, "docker login ghcr.io --username somebody --password-stdin")
                self.assertIn(f"name={REGISTRY}/{matrix['image']},push-by-digest=true", pushed)
                self.assertIn("--provenance mode=max --sbom true", pushed)
                self.assertEqual([path.name for path in (self.folder / "temp/digests").iterdir()],
                                 [DIGEST.removeprefix("sha256:")])

    def test_publishes_an_image_of_two_machines_under_its_version(self):
        digests = self.folder / "runner/digests"
        digests.mkdir(parents=True)
        one, two = "b" * 64, "c" * 64
        (digests / one).touch()
        with self.assertRaisesRegex(AssertionError, "Give the images"):
            self.run_job("publish-image", {"image": "lamplighter"}, digests.parent)
        (digests / two).touch()
        calls, outputs = self.run_job("publish-image", {"image": "lamplighter"}, digests.parent)
        name = f"{REGISTRY}/lamplighter"
        self.assertIn(f"docker buildx imagetools create --tag {name}:{VERSION} {name}@sha256:{one} {name}@sha256:{two}",
                      calls)
        self.assertEqual(calls[-1], f"docker run --rm {name}:{VERSION} --version")
        self.assertEqual(outputs, {"digest": DIGEST})

    def test_publishes_a_chart_that_names_the_published_image(self):
        calls, outputs = self.run_job("chart")
        self.assertEqual(calls[-1], f"helm push run/chart/lamplighter-{VERSION}.tgz oci://{REGISTRY}/charts")
        self.assertEqual(outputs, {"digest": DIGEST})
        package = self.root / f"run/chart/lamplighter-{VERSION}.tgz"
        objects = manifests.chart_objects(
            manifests.values_of("overlays/production"), chart=package)
        images = set(re.findall(r"'image': '([^']+)'", str(objects)))
        self.assertEqual(images, {f"{REGISTRY}/lamplighter:{VERSION}"})
        self.assertIn("PrometheusRule", [each["kind"] for each in objects])

    def test_releases_the_files_with_the_news_of_the_version(self):
        (self.root / "run/release").mkdir(parents=True)
        (self.root / "run/release/SHA256SUMS").touch()
        calls, _ = self.run_job("release")
        self.assertEqual(calls, [f"gh release create v{VERSION} --verify-tag --title Lamplighter {VERSION} "
                                 "--notes-file run/notes.md run/release/SHA256SUMS"])
        notes = (self.root / "run/notes.md").read_text()
        self.assertIn(f"docker run --rm --tty --tmpfs /tmp {REGISTRY}/lamplighter-lab:{VERSION} demo\n", notes)
        changes = (ROOT / "CHANGELOG.md").read_text()
        last = changes.partition(f"## [{VERSION}]")[2].partition("\n## ")[0].strip().splitlines()[-1]
        self.assertIn(last, notes)
        self.assertNotIn("[Unreleased]", notes)

    def test_does_not_release_without_news(self):
        path = self.root / "CHANGELOG.md"
        path.write_text(path.read_text().replace(f"## [{VERSION}]", "## [0.0.9]"))
        (self.root / "run/release").mkdir(parents=True)
        with self.assertRaisesRegex(AssertionError, r"CHANGELOG.md has no section \[0.1.0\]"):
            self.run_job("release")

    def test_tries_the_files_in_a_debian_without_the_build(self):
        runner = self.folder / "runner"
        (runner / "release").mkdir(parents=True)
        (runner / "release/a.deb").touch()
        sums = subprocess.run(["sha256sum", "a.deb"], cwd=runner / "release", capture_output=True, text=True, check=True)
        (runner / "release/SHA256SUMS").write_text(sums.stdout)
        [call, *_], _ = self.run_job("try-files", root=runner)
        self.assertIn(f"--volume {runner}/release:/release:ro debian:bookworm-slim bash -euxc", call)
        (runner / "release/a.deb").write_text("other")
        with self.assertRaisesRegex(AssertionError, "a.deb: FAILED"):
            self.run_job("try-files", root=runner)


class Chart(unittest.TestCase):
    """The chart for a registry"""

    def test_is_not_made_where_the_image_has_no_place(self):
        with tempfile.TemporaryDirectory(prefix="lamplighter-workflow-") as folder:
            root = FakeBuild(folder).root
            values = root / "deploy/helm/lamplighter/values.yaml"
            values.write_text(values.read_text().replace("  repository: lamplighter\n", "  repository: other\n"))
            done = subprocess.run(
                [root / "scripts/package-chart.sh", f"{REGISTRY}/lamplighter", folder],
                env={**ENVIRONMENT, "HELM": shutil.which("false")}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("values.yaml has no line '  repository: lamplighter'", done.stderr)


if __name__ == "__main__":
    unittest.main()
