#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Writes Package.resolved with the versions of deploy/packages-swift.txt: the packages that the
# manifest names, and those that they need. `swift build --force-resolved-versions` then takes these
# and no others. The commit of a version is asked of its repository.
set -eu
cd "$(dirname "$0")/.."
list=deploy/packages-swift.txt
pins=
while read -r url version; do
    case $url in '#'* | '') continue ;; esac
    # An annotated tag has two lines, of which the second, with ^{}, is the commit.
    commit=$(git ls-remote "$url" "refs/tags/$version" "refs/tags/$version^{}" | tail -n 1 | cut -f 1)
    [ -n "$commit" ] || {
        echo "pin-packages: $url has no version $version" >&2
        exit 1
    }
    name=$(basename "$url" .git | tr '[:upper:]' '[:lower:]')
    pins="$pins${pins:+,}
    {\"identity\": \"$name\", \"kind\": \"remoteSourceControl\", \"location\": \"$url\",
     \"state\": {\"revision\": \"$commit\", \"version\": \"$version\"}}"
done <"$list"
printf '{"pins": [%s],\n "version": 2}\n' "$pins" >Package.resolved
