#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# notices.sh FOLDER [BUILD]: writes to the folder the licences that must go with the program:
# `LICENSE`, this project's, and `THIRD-PARTY-NOTICES`, those of the Swift packages and of the Swift
# runtime that are linked into it. The packages are in BUILD/checkouts (default: .build). The C
# libraries are packages of Debian, which have theirs.
set -eu
folder=$1
build=${2:-.build}
cd "$(dirname "$0")/.."
mkdir -p "$folder"
cp LICENSE "$folder/"
notices=$folder/THIRD-PARTY-NOTICES
echo "Lamplighter is linked with the software below." >"$notices"

# add NAME FILE: appends a licence or a notice.
add() {
    printf '\n\n==== %s: %s ====\n\n' "$1" "$(basename "$2")" >>"$notices"
    cat "$2" >>"$notices"
}

# /usr/bin/swift may be a link.
toolchain=$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")
add "the Swift runtime" "$toolchain/share/swift/LICENSE.txt"
for package in "$build"/checkouts/*/; do
    for file in "$package"LICENSE* "$package"NOTICE*; do
        # Some have no notice; `add` fails where there is no licence either.
        case $file in *'/NOTICE*') continue ;; esac
        add "$(basename "$package")" "$file"
    done
done
