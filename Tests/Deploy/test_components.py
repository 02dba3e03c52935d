# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The software bill of materials, NOTICES and docs/dependencies.md, held against a build.

They are of the programs that LAMPLIGHTER_PROGRAMS names, else of .build/debug; where these lack what the
linker was given, a small build stands in for the bill alone."""

import dataclasses
import importlib.util
import json
import pathlib
import re
import sys
import tempfile
import unittest

import jsonschema
import referencing
from fake_build import FakeBuild
from manifests import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "Tests/Surfaces"))
import components  # noqa: E402
import sbom  # noqa: E402
import third_party_notices  # noqa: E402
from processes import PROGRAMS  # noqa: E402

IS_BUILT = (PROGRAMS / "lamplighter.product/Objects.LinkFileList").exists()
PAGE = ROOT / "docs/dependencies.md"


def validator():
    """Checks against CycloneDX's schema, which the package cyclonedx-python-lib has, and those it names."""
    folder = pathlib.Path(importlib.util.find_spec("cyclonedx").origin).parent / "schema/_res"
    schemas = {name: json.loads((folder / f"{name}.SNAPSHOT.schema.json").read_text())
               for name in (f"bom-{sbom.SPECIFICATION}", "spdx", "jsf-0.82")}
    # They name each other by their files.
    registry = referencing.Registry().with_resources(
        (f"{base}{name}.SNAPSHOT.schema.json", referencing.Resource.from_contents(schema))
        for name, schema in schemas.items() for base in ("", "http://cyclonedx.org/schema/"))
    return jsonschema.Draft7Validator(
        schemas[f"bom-{sbom.SPECIFICATION}"], registry=registry,
        format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)


def problems(document):
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in validator().iter_errors(document)]


def table(page=None):
    """The rows of docs/dependencies.md that have a component: its name, version and licence."""
    text = page or PAGE.read_text()
    return {row[0]: row[1:] for row in re.findall(r"^\| `([\w.+-]+)` \| ([^|]*?) \| ([^|]*?) \|", text, re.M)}


class Document(unittest.TestCase):
    """The bill of materials of a small build"""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="lamplighter-sbom-")
        build = FakeBuild(cls.folder.name)
        components.ROOT, real = build.root, components.ROOT
        try:
            cls.found = components.components(build.programs)
        finally:
            components.ROOT = real
        cls.document = sbom.document(cls.found, "0.1.0", "0123456789ab", 1700000000)
        cls.parts = {each["name"]: each for each in cls.document["components"]}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_is_valid_by_the_schema(self):
        self.assertEqual(problems(self.document), [])

    def test_is_refused_by_the_schema_with_a_breakage(self):
        for change, complaint in (
                ({"specVersion": 2}, "specVersion"), ({"serialNumber": "1"}, "serialNumber"),
                ({"components": [{"name": "a"}]}, "type")):
            with self.subTest(change=change):
                found = problems({**self.document, **change})
                self.assertTrue(any(complaint in each for each in found), found)

    def test_has_the_swift_package_that_was_linked(self):
        part = self.parts["Yams"]
        self.assertEqual((part["version"], part["purl"]), ("6.2.2", "pkg:swift/github.com/jpsim/Yams@6.2.2"))
        self.assertEqual(part["licenses"], [{"expression": "MIT"}])
        self.assertIn("0" * 40, part["externalReferences"][0]["comment"])

    def test_has_the_debian_packages_that_are_loaded(self):
        part = self.parts["zlib1g"]
        self.assertRegex(part["purl"], r"^pkg:deb/\w+/zlib1g@1%3A[\d.]+\S*\?arch=\w+&distro=\w+-\d+")
        self.assertEqual(part["licenses"], [{"expression": "Zlib"}])
        self.assertIn("libc6", self.parts)
        self.assertNotIn("librdkafka1", self.parts)

    def test_says_who_needs_whom(self):
        graph = {each["ref"]: each["dependsOn"] for each in self.document["dependencies"]}
        self.assertIn("debian/zlib1g", graph["lamplighter@0.1.0"])
        self.assertEqual(graph["debian/zlib1g"], ["debian/libc6"])
        references = {each["bom-ref"] for each in self.parts.values()}
        self.assertEqual(set(graph), {"lamplighter@0.1.0"} | references)

    def test_is_the_same_for_the_same_build(self):
        again = sbom.document(self.found, "0.1.0", "0123456789ab", 1700000000)
        self.assertEqual(again, self.document)
        other = sbom.document(self.found, "0.1.0", "ba9876543210", 1700000000)
        self.assertNotEqual(other["serialNumber"], self.document["serialNumber"])


class Notices(unittest.TestCase):
    """The search for what the notices lack finds"""

    @classmethod
    def setUpClass(cls):
        cls.text = third_party_notices.FILE.read_text()
        cls.yams = components.Component("swift", "Yams", "6.2.2", "MIT", "", "")

    def test_nothing_where_name_and_licence_are_there(self):
        self.assertEqual(third_party_notices.missing([self.yams], self.text), [])

    def test_a_name_that_is_not_there_or_has_another_licence(self):
        for change in ({"name": "Jams"}, {"licence": "Apache-2.0"}, {"licence": ""}):
            with self.subTest(change=change):
                other = dataclasses.replace(self.yams, **change)
                self.assertEqual(third_party_notices.missing([other], self.text), [other.name])

    def test_each_list_and_no_text_of_a_licence(self):
        stated = third_party_notices.stated(self.text)
        self.assertEqual(stated["llhttp"], "MIT")
        self.assertEqual(stated["zlib1g"], "Zlib")
        for name in stated:
            self.assertRegex(name, r"^[\w.+-]+$")


class Licences(unittest.TestCase):
    """A licence"""

    def test_is_told_by_its_text(self):
        apache = (ROOT / "LICENSE").read_text()
        self.assertEqual(components.licence_of(apache), "Apache-2.0")
        exception = f"{apache}\n## Runtime Library Exception to the Apache 2.0 License: ##\n"
        self.assertEqual(components.licence_of(exception), "Apache-2.0 WITH Swift-exception")
        self.assertEqual(components.licence_of("Mine. Ask me."), "")


@unittest.skipUnless(IS_BUILT, "no build whose linked objects are known")
class Build(unittest.TestCase):
    """What the programs are linked with"""

    @classmethod
    def setUpClass(cls):
        cls.found = components.components(PROGRAMS)
        # Debian's libraries have other names in other releases.
        system = pathlib.Path("/etc/os-release").read_text()
        is_reviewed = "ID=debian" in system and 'VERSION_ID="12"' in system
        cls.reviewed = [each for each in cls.found if each.is_linked_in or is_reviewed]

    def test_makes_a_valid_bill_of_materials(self):
        document = sbom.document(self.found, sbom.version(), "0123456789ab", 1700000000)
        self.assertEqual(problems(document), [])
        names = {each["name"] for each in document["components"]}
        self.assertLessEqual(
            {"librdkafka1", "swift-nio", "Yams", "llhttp", "swift-runtime", "ICU"}, names)

    def test_has_a_licence_for_all_that_is_in_the_programs(self):
        for each in self.found:
            if each.is_linked_in:
                with self.subTest(each.name):
                    self.assertTrue(each.licence)

    def test_is_named_in_the_notices(self):
        text = third_party_notices.FILE.read_text()
        self.assertEqual(third_party_notices.missing(self.reviewed, text), [])
        if len(self.reviewed) == len(self.found):
            self.assertEqual(third_party_notices.notices(self.found), text, "run make notices")

    def test_has_the_same_licences_in_the_bill_of_materials_and_in_the_notices(self):
        document = sbom.document(self.reviewed, sbom.version(), "0123456789ab", 1700000000)
        stated = third_party_notices.stated(third_party_notices.FILE.read_text())
        for each in document["components"]:
            with self.subTest(each["name"]):
                licence = each["licenses"][0]
                self.assertEqual(licence.get("expression", third_party_notices.UNKNOWN), stated[each["name"]])

    def test_is_reviewed(self):
        rows = table()
        for each in self.reviewed:
            with self.subTest(each.name):
                self.assertIn(each.name, rows, "review it in docs/dependencies.md")
                self.assertEqual(rows[each.name][1], each.licence or "see its file")


class Page(unittest.TestCase):
    """docs/dependencies.md"""

    def test_has_the_version_of_each_package_that_the_manifest_names(self):
        rows, manifest = table(), (ROOT / "Package.swift").read_text()
        packages = re.findall(r'url:\s*"[^"]*/([^"/]+)",\s*exact: "([\d.]+)"', manifest)
        self.assertGreaterEqual(len(packages), 5)
        for name, version in packages:
            if name in rows:
                self.assertEqual(rows[name][0], version, name)

    def test_has_the_date_of_the_review(self):
        self.assertRegex(PAGE.read_text(), r"[Rr]eviewed on 20\d\d-\d\d-\d\d")


if __name__ == "__main__":
    unittest.main()
