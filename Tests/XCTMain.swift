// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

/// Runs the tests. Without this file the package manager looks for tests of XCTest, of which there are
/// none, in an index that the compiler has to write for that: a fifth of a build's time.
@main enum Runner {
    static func main() async {
        // `swift test` also asks for the tests of XCTest.
        let arguments = CommandLine.arguments
        let library = arguments.firstIndex(of: "--testing-library")
            .map { arguments.index(after: $0) }
        if let library, library < arguments.endIndex, arguments[library] == "xctest" { return }
        await Testing.__swiftPMEntryPoint() as Never
    }
}
