// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

// A package of its own: only who runs `make mutate` or the check of this program builds swift-syntax.

import PackageDescription

let package = Package(
    name: "mutation-operators",
    dependencies: [
        .package(url: "https://github.com/swiftlang/swift-syntax", exact: "603.0.1")
    ],
    targets: [
        .executableTarget(
            name: "mutation-operators",
            dependencies: [
                .product(name: "SwiftSyntax", package: "swift-syntax"),
                .product(name: "SwiftParser", package: "swift-syntax"),
                .product(name: "SwiftOperators", package: "swift-syntax"),
            ],
            swiftSettings: [.treatAllWarnings(as: .error)])
    ],
    swiftLanguageModes: [.v6])
