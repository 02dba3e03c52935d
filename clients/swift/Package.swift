// swift-tools-version: 6.0
// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PackageDescription

// The newest systems are asked for where they are needed, with @available: push for widgets came with
// iOS 26 and macOS 26, push for controls with iOS 18 and macOS 26.
let package = Package(
    name: "LamplighterClient",
    platforms: [.iOS(.v18), .macOS(.v15)],
    products: [.library(name: "LamplighterClient", targets: ["LamplighterClient"])],
    targets: [
        // What needs no framework of Apple's: it is built and tested on Linux too.
        .target(name: "LamplighterClientCore"),
        // What needs WidgetKit, ActivityKit, the Keychain, App Attest; empty on Linux.
        .target(name: "LamplighterClient", dependencies: ["LamplighterClientCore"]),
        // The child that the tests kill while it writes.
        .executableTarget(
            name: "OutboxWriter", dependencies: ["LamplighterClientCore"],
            path: "Tests/OutboxWriter"),
        .testTarget(
            name: "LamplighterClientCoreTests",
            dependencies: ["LamplighterClientCore", "OutboxWriter"]),
    ],
    swiftLanguageModes: [.v6]
)
