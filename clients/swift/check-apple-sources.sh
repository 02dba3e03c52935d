#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

# Type-checks what needs Apple's frameworks, LamplighterClient and examples/GarageDoor, on Linux against
# the stub modules in Stubs: once as on iOS, once as on macOS. Nothing is linked and nothing is run.
#
# usage: check-apple-sources.sh [FOLDER for what is compiled, default .stubs]

set -eu
cd "$(dirname "$0")"
out=${1:-.stubs}
garage=../../examples/GarageDoor

[ "$(uname)" = Linux ] || {
    echo "On a Mac build the package and the app with Xcode: the real frameworks say more." >&2
    exit 64
}

# Apple builds its frameworks in Swift 5 mode; what they leave open must not be stricter here.
stub() { # profile module flags...
    profile=$1 module=$2
    shift 2
    swiftc -emit-module -wmo -parse-as-library -swift-version 5 -suppress-warnings -module-name "$module" \
        -I "$out/$profile" "$@" -o "$out/$profile/$module.swiftmodule" "Stubs/$module.swift"
}

# Swift 6 mode, as in Package.swift; a warning is an error. All files of a module at once (-wmo): one process
# of the compiler for each takes five times the processor's time.
ours() { # profile module (-typecheck | -emit-module) files...
    profile=$1 module=$2 mode=$3
    shift 3
    if [ "$mode" = -emit-module ]; then
        set -- -o "$out/$profile/$module.swiftmodule" "$@"
    fi
    swiftc "$mode" -wmo -parse-as-library -swift-version 6 -warnings-as-errors -module-name "$module" \
        -package-name lamplighterclient -I "$out/$profile" "$@"
}

for profile in iOS macOS; do
    rm -rf "${out:?}/$profile"
    mkdir -p "$out/$profile"
    if [ $profile = iOS ]; then
        set -- FoundationOnApple UIKit Security CryptoKit DeviceCheck AppIntents SwiftUI WidgetKit \
            ActivityKit
        flags=
    else
        set -- FoundationOnApple AppKit Security CryptoKit DeviceCheck AppIntents SwiftUI WidgetKit
        flags=-DSTUBS_OF_MACOS
    fi
    for module in "$@"; do
        # shellcheck disable=SC2086
        stub $profile "$module" $flags
    done
    ours $profile LamplighterClientCore -emit-module Sources/LamplighterClientCore/*.swift
    ours $profile LamplighterClient -emit-module Sources/LamplighterClient/*.swift
    echo "LamplighterClient type-checks against the stubs of $profile."
done

ours iOS GarageDoor -typecheck "$garage"/Shared/*.swift "$garage"/App/*.swift
ours iOS GarageDoorWidgets -typecheck "$garage"/Shared/*.swift "$garage"/Widgets/*.swift
echo "The garage door app and its extension type-check against the stubs of iOS."
echo "This was a check of types against declarations of our own: nothing was compiled with Apple's"
echo "SDK, and nothing was run on a device or a simulator. @available is not checked on Linux."
