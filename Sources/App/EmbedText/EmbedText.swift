// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import PackagePlugin

/// Adds `enum EmbeddedText` to a target, with a constant for each of its files that is not Swift:
/// `page_html` for `page.html`.
///
/// SwiftPM's own `.embedInCode` writes one number for each byte. The compiler takes 40 s for those of
/// 150 KB, and next to nothing for the same text as a string.
@main
struct EmbedText: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        guard let module = target.sourceModule else { return [] }
        let files = module.sourceFiles.map(\.url).filter { $0.pathExtension != "swift" }
            .sorted { $0.path < $1.path }
        let script = context.package.directoryURL.appending(path: "scripts/embed-text.sh")
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedText.swift")
        return [
            .buildCommand(
                displayName: "Embedding the texts of \(target.name)",
                executable: URL(filePath: "/bin/sh"),
                arguments: [script.path, output.path] + files.map(\.path),
                inputFiles: [script] + files, outputFiles: [output])
        ]
    }
}
