# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What the pages quote from the examples stands there. Needs nothing but Python."""

import unittest

from quotes import QUOTE, REFERENCE, ROOT, mistakes, read, rewritten

PAGES = [page for folder in ("docs", "clients", "examples") for page in sorted((ROOT / folder).rglob("*.md"))
         if not any(part.startswith(".") for part in page.relative_to(ROOT).parts)]


class Quotes(unittest.TestCase):
    def test_pages_quote_what_the_examples_have(self):
        quoted = 0
        for page in PAGES:
            with self.subTest(page=page.relative_to(ROOT)):
                text = page.read_text()
                quoted += len(QUOTE.findall(text))
                self.assertEqual(mistakes(text, read), [])
        self.assertGreater(quoted, 5)

    def test_code_of_the_client_page_is_all_quoted(self):
        page = read("docs/clients.md")
        blocks = sum(page.count(f"```{language}\n") for language in ("swift", "python", "go"))
        self.assertEqual(blocks, len(QUOTE.findall(page)))
        self.assertEqual(blocks, len(REFERENCE.findall(page)))


class Mistakes(unittest.TestCase):
    """That the test above can fail."""

    FILE = "// SPDX-License-Identifier: X\n// Part of it.\n\n  // a: why\n  let x = 1\n    let y = 2\n  // end\n"
    PAGE = "<!-- from f: a -->\n```swift\nlet x = 1\n  let y = 2\n```\n"

    def found(self, page, file=FILE):
        def open_file(path):
            if path != "f":
                raise FileNotFoundError(path)
            return file
        return len(mistakes(page, open_file))

    def test_a_page_is_written_anew(self):
        self.assertEqual(rewritten(self.PAGE.replace("x = 1", "x = 2"), lambda path: self.FILE), self.PAGE)

    def test_an_exact_quote_is_accepted(self):
        self.assertEqual(self.found(self.PAGE), 0)
        self.assertEqual(self.found("<!-- from f -->\n```\nlet z\n```\n", "# SPDX-License-X\n\nlet z\n"), 0)

    def test_any_difference_is_found(self):
        self.assertEqual(self.found(self.PAGE.replace("x = 1", "x = 2")), 1)
        self.assertEqual(self.found(self.PAGE.replace("  let y", "let y")), 1)
        self.assertEqual(self.found(self.PAGE, self.FILE.replace("y = 2", "y = 3")), 1)

    def test_a_name_that_is_not_there_is_found(self):
        self.assertEqual(self.found(self.PAGE.replace("f: a", "f: b")), 1)
        self.assertEqual(self.found(self.PAGE.replace("f: a", "g: a")), 1)
        self.assertEqual(self.found(self.PAGE, self.FILE.replace("// end", "")), 1)
        self.assertEqual(self.found(self.PAGE, self.FILE + self.FILE), 1)
        self.assertEqual(self.found(self.PAGE.replace("```swift\n", "\n```swift\n")), 1)


if __name__ == "__main__":
    unittest.main()
