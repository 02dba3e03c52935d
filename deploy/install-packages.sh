#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# install-packages.sh FILE: installs on Debian 12 the packages that the file lists, in exactly these
# versions. A mirror keeps only the newest version of a package, so they come from Debian's archive of
# the day that the variable SNAPSHOT names; if it is empty, from the mirrors that apt has here.
set -eu
packages=$(grep -v '^#' "$1")
export DEBIAN_FRONTEND=noninteractive
set --
if [ -n "${SNAPSHOT:-}" ]; then
    archive=http://snapshot.debian.org/archive
    sources=$(mktemp)
    # The archive's signatures are of that day: apt would call them expired.
    cat >"$sources" <<LINES
deb [check-valid-until=no] $archive/debian/$SNAPSHOT bookworm main
deb [check-valid-until=no] $archive/debian/$SNAPSHOT bookworm-updates main
deb [check-valid-until=no] $archive/debian-security/$SNAPSHOT bookworm-security main
LINES
    set -- --option Dir::Etc::SourceList="$sources" --option Dir::Etc::SourceParts=-
fi
apt-get "$@" update --quiet=2
# The base image may have a newer version than the list, if the list is older. Where that would remove a
# package, the list has to be written anew.
# shellcheck disable=SC2086 # One word is one package.
apt-get "$@" install --quiet=2 --yes --no-install-recommends --allow-downgrades --no-remove $packages
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb \
    /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log /var/log/alternatives.log ${sources:-}
