// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import PackagePlugin

/// Adds `let buildCommit = "…"` to a target, for `lamplighter --version`.
///
/// A prebuild command runs at every build. The manifest cannot do this: SwiftPM caches it, so a
/// build after `git pull` would name the previous commit.
@main
struct BuildCommit: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let output = context.pluginWorkDirectoryURL.appending(path: "Generated")
        let script = context.package.directoryURL.appending(path: "scripts/build-commit.sh")
        // SwiftPM gives a command no variables but those that are named here.
        let environment = ProcessInfo.processInfo.environment.filter { $0.key == "SOURCE_COMMIT" }
        return [
            .prebuildCommand(
                displayName: "Reading the commit", executable: URL(filePath: "/bin/sh"),
                arguments: [script.path, output.path], environment: environment,
                outputFilesDirectory: output)
        ]
    }
}
