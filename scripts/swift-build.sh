#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
# `swift build`, and once more where the package manager itself has crashed: that of 6.3.1 was seen to end
# by SIGSEGV in its event loop before it had begun to compile. What the compiler refuses is not tried again.
set -euo pipefail

status=0
swift build "$@" || status=$?
case $status in
    132 | 133 | 134 | 135 | 139)
        echo "swift build has crashed (signal $((status - 128))); trying once more" >&2
        exec swift build "$@"
        ;;
esac
exit "$status"
