#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# build-commit.sh FOLDER: writes BuildCommit.swift there, the commit that is being built, with
# "-dirty" after it when tracked files have been changed. Without a repository (an archive, a
# container) it is the variable SOURCE_COMMIT, else "unknown". The Swift package manager calls this
# at every build; the file is only touched when it changes, so that nothing is compiled for it.
set -eu
folder=$1
source=$(cd "$(dirname "$0")/.." && pwd)

commit=${SOURCE_COMMIT:-unknown}
# The commit must be of this repository: an unpacked archive may lie inside another one.
if [ -e "$source/.git" ]; then
    commit=$(git -C "$source" describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null) ||
        commit=unknown
fi
# Only characters that cannot end the string literal are kept.
commit=$(printf %s "$commit" | tr -cd '0-9A-Za-z._-')

text="let buildCommit = \"$commit\""
mkdir -p "$folder"
[ "$(cat "$folder/BuildCommit.swift" 2>/dev/null)" = "$text" ] ||
    printf '%s\n' "$text" >"$folder/BuildCommit.swift"
