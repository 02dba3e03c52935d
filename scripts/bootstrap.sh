#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Makes sure that everything is installed that the build and the tests need: installs missing
# packages where there is apt, and says in one sentence what is missing on other systems. Changes
# nothing if nothing is missing. Each argument adds what only one verb needs: `surfaces` a browser, unless
# CHROMIUM names one, and a font for it; `deploy` docker-compose, and what checks a systemd unit;
# `examples` Go, its libraries and SQLite's; these, `registrar` and `schemas` Python's environments;
# `registrar-bench` wrk; `deb` and `image` the tools of Debian's packagers; `busy` stress-ng.
set -euo pipefail

swift_needed=6.2

# Libraries, each with its pkg-config name; then tools of the build (g++ brings the C and C++
# headers and the linker); then the libraries that an unpacked Swift toolchain is linked to; then
# foreign programs with which the tests prove interoperability.
libraries=(
    librdkafka-dev:rdkafka
    libcurl4-openssl-dev:libcurl
    libssl-dev:openssl
    libnghttp2-dev:libnghttp2
    libsimdjson-dev:simdjson
    zlib1g-dev:zlib
)
tools=(git g++ make pkg-config)
toolchain=(libncurses6 libsqlite3-0 libxml2)
test_programs=(
    curl openssl kcat nghttp2-client nghttp2-server nginx tinyproxy-bin
    prometheus python3 python3-h2 python3-httpx valgrind
)
# The packages among them that install a system service.
services=(nginx prometheus)
as_root=()

fail() {
    echo "bootstrap: $*" >&2
    exit 1
}

require_swift() {
    command -v swift >/dev/null ||
        fail "Swift $swift_needed or newer is missing; install it from https://www.swift.org/install"
    local version found
    version=$(swift --version 2>&1) || fail "swift does not start: $version"
    found=$(sed -n 's/.*Swift version \([0-9.]*\).*/\1/p' <<<"$version" | head -n 1)
    [ "$(printf '%s\n' "$swift_needed" "$found" | sort -V | head -n 1)" = "$swift_needed" ] ||
        fail "Swift $swift_needed or newer is needed and this is ${found:-unknown}; see https://www.swift.org/install"
}

is_installed() {
    [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Debian starts a service when it is installed and at each boot. The tests start their own servers,
# and nobody who runs them has asked for a service on port 80. Before a service is started this file
# is asked, and exit code 101 forbids it. A machine that already has the file has its own policy.
policy=/usr/sbin/policy-rc.d

forbid_starts() {
    [ ! -e "$policy" ] || return 0
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$policy"
}

# disable_services PACKAGE...: disables the services of packages that have just been installed.
disable_services() {
    local package service
    for package in "$@"; do
        for service in "${services[@]}"; do
            [ "$package" != "$service" ] || "${as_root[@]}" update-rc.d "$service" disable
        done
    done
}

install_with_apt() {
    local missing=() package
    for package in "${libraries[@]%%:*}" "${tools[@]}" "${toolchain[@]}" "${test_programs[@]}"; do
        is_installed "$package" || [[ " ${missing[*]} " == *" $package "* ]] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            fail "these packages are missing and there is no sudo to install them: ${missing[*]}"
        as_root=(sudo)
    fi
    as_root+=(env DEBIAN_FRONTEND=noninteractive)
    # Another script of ours may be installing what it needs.
    local install=(apt-get --option DPkg::Lock::Timeout=600 install --yes --no-install-recommends "${missing[@]}")
    echo "+ apt-get update"
    # One stale repository must not stop an install that does not need it.
    "${as_root[@]}" apt-get update --quiet=2 ||
        echo "bootstrap: apt-get update failed; trying with the lists at hand" >&2
    forbid_starts
    echo "+ ${install[*]}"
    "${as_root[@]}" "${install[@]}"
    disable_services "${missing[@]}"
}

require_libraries() {
    local missing=() library
    command -v pkg-config >/dev/null || missing+=(pkg-config)
    for library in "${libraries[@]}"; do
        pkg-config --exists "${library#*:}" 2>/dev/null || missing+=("${library#*:}")
    done
    [ ${#missing[@]} -eq 0 ] ||
        fail "without apt-get, please install the development files of: ${missing[*]}"
}

wanted=" $* "
wants() { [[ $wanted == *" $1 "* ]]; }

if wants surfaces; then
    test_programs+=(fonts-inter)
    if [ -z "${CHROMIUM:-}" ]; then
        # Ubuntu has Chromium as a snap alone, which does not run in a container.
        ! grep -qs '^ID=ubuntu' /etc/os-release ||
            fail "set CHROMIUM to the path of a Chromium or Chrome; Ubuntu has no package of one"
        test_programs+=(chromium)
    fi
fi
if wants deploy; then
    test_programs+=(docker-compose dpkg-dev systemd)
fi
if wants examples; then
    test_programs+=(
        golang-github-confluentinc-confluent-kafka-go-dev golang-github-mattn-go-sqlite3-dev golang-go
        libsqlite3-dev
    )
fi
for check in surfaces deploy examples registrar schemas; do
    ! wants "$check" || test_programs+=(python3-venv)
done
! wants registrar-bench || test_programs+=(wrk)
! wants deb || test_programs+=(dpkg-dev)
! wants image || test_programs+=(debootstrap dpkg-dev lintian systemd systemd-container)
! wants busy || test_programs+=(stress-ng)
[ "$(uname -s)" = Linux ] ||
    fail "Lamplighter needs Linux (epoll, eventfd); use a container such as swift:6.3-bookworm"
if command -v apt-get >/dev/null; then install_with_apt; else require_libraries; fi
require_swift
