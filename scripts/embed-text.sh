#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# embed-text.sh OUTPUT FILE...: writes a Swift file with the text of each file as a constant. The Swift
# package manager calls this when one of them has changed.
set -eu
output=$1
shift
{
    echo "enum EmbeddedText {"
    for file in "$@"; do
        # A raw string ends at the first of these, and the second begins an escape in it.
        if grep -q -F -e '"""##' -e '\##' -e "$(printf '\r')" "$file"; then
            echo "embed-text: $file has what a raw string cannot hold" >&2
            exit 1
        fi
        printf 'static let %s = ##"""\n' "$(basename "$file" | tr -c '0-9A-Za-z\n' _)"
        # The line break before the end of the string is not of the string.
        cat "$file"
        printf '\n"""##\n'
    done
    echo "}"
} >"$output"
