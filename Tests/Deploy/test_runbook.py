# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The runbook has each alert, and each line that a worker writes to its log above `info`; it or the registrar's
page has each of a registrar."""

import re
import unittest

import promql
import yaml

PAGE = (promql.ROOT / "docs/runbook.md").read_text()
# White space and line ends as one blank, so that lines may be folded.
FLAT = re.sub(r"\s+", " ", PAGE)
GROUPS = yaml.safe_load((promql.ROOT / "deploy/prometheus/rules.yaml").read_text())["groups"]
ALERTS = [rule["alert"] for group in GROUPS for rule in group["rules"] if "alert" in rule]
# Of each folder the text that has its lines: the registrar's page has a table of those that it alone writes.
REGISTRAR = re.sub(r"\s+", " ", (promql.ROOT / "docs/registrar.md").read_text())
FOLDERS = {"App/Configuration": FLAT, "App/Worker": FLAT, "App/lamplighter": FLAT, "Drivers": FLAT,
           "Registrar": FLAT + REGISTRAR}

CALL = re.compile(
    r"\blogger\.(?:notice|warning|error|critical)\(|\blog\.write\(|\blogger\.log\(|(?<!func )\btell\((?=\s*\")"
)
# Lines whose text is made elsewhere, by the whole literal in the source, and how the page has them.
MADE_ELSEWHERE = {
    # Of a listener, whose line is made where it is asked for.
    "host": ["listening for …"],
    # A registrar's, of the files of its keys and of a key set.
    r"\(notice.text)": ["has changed, and is in force", "what it said before stays in force",
                        "keys that verify tokens, and", "is back", "`the key set … …`"],
    # The line of a pool, and librdkafka's; those who write the first are found by themselves.
    r"\(message)": [],
    r"\(secrets.redact(text))": ["facility="],
}


def without_interpolations(literal):
    """The pieces of a string literal between its interpolations."""
    pieces, depth, piece, position = [], 0, "", 0
    while position < len(literal):
        if depth == 0 and literal.startswith("\\(", position):
            pieces.append(piece)
            piece, depth, position = "", 1, position + 2
            continue
        character = literal[position]
        if depth:
            depth += {"(": 1, ")": -1}.get(character, 0)
        else:
            piece += character
        position += 1
    return [*pieces, piece]


def literal_in(text):
    """The first string literal of a text, without its quotes; None if there is none."""
    block = re.match(r'[^"]*"""\n(.*?)"""', text, re.S)
    if block:
        return re.sub(r"\s+", " ", block[1].replace("\\\n", "")).strip()
    start = text.find('"')
    if start < 0:
        return None
    depth, position = 0, start + 1
    while depth or text[position] != '"':
        if text.startswith("\\(", position):
            depth, position = depth + 1, position + 2
            continue
        if depth:
            depth += {"(": 1, ")": -1}.get(text[position], 0)
        position += 1
    return text[start + 1 : position]


def arguments(source, start):
    """The text of a call from after its opening parenthesis to the closing one."""
    depth, position = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(source[position], 0)
        position += 1
    return source[start : position - 1]


def lines_above_info(source):
    """The literals of the calls that write such lines."""
    for call in CALL.finditer(source):
        text = arguments(source, call.end())
        is_pool = "log.write" in call[0]
        if is_pool and not re.search(r"\.(warning|error)\b", text.split('"')[0]):
            if re.search(r"^\s*\.\w+, \.info", text):
                continue
        literal = literal_in(text)
        if literal is not None:
            yield literal


def pieces(literal):
    """What the page must have of a line."""
    if literal in MADE_ELSEWHERE:
        return MADE_ELSEWHERE[literal]
    longest = max(without_interpolations(literal), key=len).strip(" :;,.(")
    return [re.sub(r"\s+", " ", longest)]


class Runbook(unittest.TestCase):
    """The runbook"""

    def test_has_each_alert_once_with_meaning_and_remedy(self):
        for alert in ALERTS:
            with self.subTest(alert):
                parts = re.findall(rf"^### {alert}\n(.*?)(?=^##)", PAGE, re.M | re.S)
                self.assertEqual(len(parts), 1)
                for word in ("**Means.**", "**See.**", "**Do.**"):
                    self.assertIn(word, parts[0])

    def test_has_no_alert_that_there_is_not(self):
        self.assertEqual(set(re.findall(r"^### (Lamplighter\w+)", PAGE, re.M)) - set(ALERTS), set())

    def test_has_each_line_of_the_log_above_info(self):
        found = 0
        for folder, text in FOLDERS.items():
            for file in sorted((promql.ROOT / "Sources" / folder).rglob("*.swift")):
                for literal in lines_above_info(file.read_text()):
                    for piece in pieces(literal):
                        found += 1
                        with self.subTest(file.name, line=literal):
                            self.assertGreater(len(piece), 5, "add it to MADE_ELSEWHERE")
                            self.assertIn(piece, text)
        self.assertGreater(found, 60)

    def test_has_links_that_lead_somewhere(self):
        for target in re.findall(r"\]\(([^)#]*)(?:#[^)]*)?\)", PAGE):
            if target and "://" not in target:
                self.assertTrue((promql.ROOT / "docs" / target).exists(), target)
        anchors = {
            re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", PAGE, re.M)
        }
        for anchor in re.findall(r"\]\(#([^)]*)\)", PAGE):
            self.assertIn(anchor, anchors)


class Lines(unittest.TestCase):
    """The search for lines of the log finds"""

    def test_the_text_of_a_line_without_what_is_filled_in(self):
        source = 'logger.warning("lost \\(name("a")) with all in flight", metadata: ["a": "b"])'
        self.assertEqual([pieces(one) for one in lines_above_info(source)], [["with all in flight"]])

    def test_a_line_of_several_lines(self):
        source = 'logger.error(\n    """\n    one and \\\n    two\n    """)'
        self.assertEqual(list(lines_above_info(source)), ["one and two"])

    def test_a_line_of_a_pool_but_none_at_info(self):
        source = 'log.write(.lost, .warning, "it is gone")\nlog.write(.resized, .info, "grown")'
        self.assertEqual(list(lines_above_info(source)), ["it is gone"])


if __name__ == "__main__":
    unittest.main()
