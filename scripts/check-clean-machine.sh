#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Proves that a clone and make suffice: a fresh Debian 12 with git, make and a Swift toolchain
# clones HEAD and runs `make run-local`, which sets up all that `make demo` and `make test` need;
# fails if the first push takes more than 12 minutes from the clone on. The fresh machine is a chroot, made and used in a mount and a process
# namespace of its own (this script, called with `inside`): whatever ends it, no mount and no
# process is left.
#
# MIRROR=url   the Debian mirror, if not the one this machine's apt uses
# SECONDS_MAX  what fails, in seconds from the clone to the first push (default 720)
# KEEP=1       leave the root for a look
set -euo pipefail
cd "$(dirname "$0")/.."

suite=bookworm
seconds_max=${SECONDS_MAX:-720}
home=/root/lamplighter # Where the clone is, in the fresh machine.

fail() {
    echo "check-clean-machine: $*" >&2
    exit 1
}

# What this machine's apt has of the suite, as lines of a sources.list.
debian_sources() {
    if [ -n "${MIRROR:-}" ]; then
        echo "deb $MIRROR $suite main"
        return
    fi
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' | awk -v suite="$suite" 'index($3, suite) == 1'
}

require_means() {
    [ "$(id -u)" -eq 0 ] || fail "cannot run: only root may make a chroot"
    command -v apt-get >/dev/null || fail "cannot run: this needs Debian or Ubuntu (apt-get)"
    unshare --mount --pid --fork true 2>/dev/null ||
        fail "cannot run: mounts are not allowed here (a container without CAP_SYS_ADMIN?)"
    command -v swift >/dev/null || fail "cannot run: there is no swift to lend to the fresh machine"
    toolchain=$(readlink -f "$(command -v swift)")
    toolchain=${toolchain%/usr/bin/*}
    [ -n "$toolchain" ] ||
        fail "cannot run: swift lies in /usr, among the system's files; unpack one elsewhere"
    [ -n "$(debian_sources)" ] || apt-get update --quiet=2
    mirror=$(debian_sources | awk -v suite="$suite" '$3 == suite { print $2; exit }')
    [ -n "$mirror" ] || fail "cannot run: apt knows no mirror of $suite here; give MIRROR=url"
    command -v debootstrap >/dev/null ||
        apt-get install --yes --no-install-recommends debootstrap ||
        fail "cannot run: debootstrap is missing and cannot be installed"
}

# The fresh machine reaches the network as this one does: names, proxies, certificates, mirrors of
# git repositories. Nothing else of this machine goes in.
lend_settings() {
    local authority setting value
    cp --dereference /etc/resolv.conf /etc/hosts "$root/etc/"
    debian_sources >"$root/etc/apt/sources.list"
    apt-config dump | grep -iE '^Acquire::(https?|Check-|Retries)' \
        >"$root/etc/apt/apt.conf.d/90machine" || true
    for authority in /usr/local/share/ca-certificates/*.crt; do
        [ ! -e "$authority" ] || cp "$authority" "$root/usr/local/share/ca-certificates/"
    done
    chroot "$root" update-ca-certificates >/dev/null
    while read -r setting value; do
        git config --file "$root/etc/gitconfig" --add "$setting" "$value"
    done < <(git config --get-regexp '^(url\..*\.insteadof|http\..*proxy)$')
}

# Directories that git is told to fetch from instead of a host.
git_mirrors() {
    git config --name-only --get-regexp '^url\./.*\.insteadof$' |
        sed -E 's/^url\.(.*)\.insteadof$/\1/' | sort -u
}

make_root() {
    echo "+ debootstrap --variant=minbase $suite"
    debootstrap --variant=minbase --include=ca-certificates,git,make "$suite" "$root" "$mirror" \
        >"$folder/debootstrap.log" 2>&1 || {
        tail -n 5 "$folder/debootstrap.log" >&2
        fail "the fresh machine could not be made"
    }
    lend_settings
}

# lend DIRECTORY: shows it to the fresh machine at the same place, read only.
lend() {
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
}

# In the namespaces: makes the machine, clones, runs.
inside() {
    local git_mirror started proxies=() name
    make_root
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    lend "$toolchain"
    for git_mirror in $(git_mirrors); do lend "${git_mirror%/}"; done
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        [ -z "${!name:-}" ] || proxies+=("$name=${!name}")
    done
    started=$SECONDS
    echo "+ git clone"
    git clone --quiet --no-hardlinks . "$root$home"
    echo "+ make run-local"
    chroot "$root" env --ignore-environment \
        PATH="$toolchain/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
        HOME=/root LANG=C.UTF-8 "${proxies[@]}" \
        timeout --kill-after=10 "$seconds_max" make --directory "$home" run-local ||
        fail "no push accepted, $((SECONDS - started)) s after the clone (at most $seconds_max)"
    echo "clean machine: first push accepted $((SECONDS - started)) s after the clone" \
        "(at most $seconds_max)"
}

leave() {
    # Its first process: with it all others end, and the mounts go.
    [ -z "$inhabitant" ] || kill -KILL "$inhabitant" 2>/dev/null || true
    if [ "${KEEP:-0}" = 1 ]; then
        echo "The fresh machine is kept in $root"
    else
        # Processes that are just ending may still write.
        rm -rf --one-file-system "$folder" || { sleep 1 && rm -rf --one-file-system "$folder"; }
    fi
}

if [ "${1:-}" = inside ]; then
    inside
    exit
fi
require_means
folder=$(mktemp -d)
root=$folder/root
export folder root toolchain mirror
inhabitant=
trap leave EXIT
trap 'exit 130' INT TERM
unshare --mount --pid --mount-proc --fork --kill-child scripts/check-clean-machine.sh inside &
inhabitant=$!
# Waiting in the background, so that a signal is obeyed at once.
wait "$inhabitant"
inhabitant=
