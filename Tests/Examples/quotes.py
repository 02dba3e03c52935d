# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Code that a page quotes from a file.

On the page, a comment stands before the block:

    <!-- from examples/GarageDoor/Shared/Garage.swift: lamplighter -->

In the file, the quoted lines stand between a comment that begins with the same word and one that says
`end`; without a word the whole file is quoted, but for its licence. `quotes.py PAGE…` writes the blocks of
these pages anew."""

import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

QUOTE = re.compile(
    r"^<!-- from (?P<file>\S+?)(?:: (?P<section>\S+))? -->\n```\w*\n(?P<code>.*?)^```$", re.M | re.S)
REFERENCE = re.compile(r"^<!-- from ", re.M)
COMMENT = r"^[ \t]*(?://|#|--) ?"


class Unquotable(Exception):
    """A page names a file or a section that is not there."""


def section(text, name):
    """The lines of a section, without their common indentation."""
    begin = re.findall(rf"{COMMENT}{re.escape(name)}(?::.*)?\n", text, re.M)
    if len(begin) != 1:
        raise Unquotable(f"{len(begin)} sections are called {name}")
    rest = re.split(rf"{COMMENT}{re.escape(name)}(?::.*)?\n", text, maxsplit=1, flags=re.M)[1]
    lines = re.split(rf"{COMMENT}end$", rest, maxsplit=1, flags=re.M)
    if len(lines) != 2:
        raise Unquotable(f"the section {name} has no end")
    return textwrap.dedent(lines[0]).strip("\n")


def whole(text):
    """A file without the comment of its licence."""
    return re.sub(rf"\A(?:{COMMENT}(?:SPDX-License|Part of).*\n)+\s*", "", text, flags=re.M).strip("\n")


def quoted(quote, read):
    """What a quote should say; `read` gives the text of a file by its path."""
    text = read(quote["file"])
    return section(text, quote["section"]) if quote["section"] else whole(text)


def read(path):
    return (ROOT / path).read_text()


def mistakes(page, read):
    """What is wrong with the quotes of a page."""
    found = []
    quotes = list(QUOTE.finditer(page))
    if len(quotes) != len(REFERENCE.findall(page)):
        found.append("a comment `from` has no block of code right after it")
    for quote in quotes:
        name = f"{quote['file']}: {quote['section'] or 'the whole file'}"
        try:
            code = quoted(quote, read)
        except (OSError, Unquotable) as error:
            found.append(f"{name}: {error}")
            continue
        if code != quote["code"].strip("\n"):
            found.append(f"{name} says\n{code}")
    return found


def rewritten(page, read):
    """The page with what the files say now."""
    def renew(quote):
        begin, end = (place - quote.start() for place in quote.span("code"))
        return quote[0][:begin] + quoted(quote, read) + "\n" + quote[0][end:]
    return QUOTE.sub(renew, page)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(rewritten(path.read_text(), read))
