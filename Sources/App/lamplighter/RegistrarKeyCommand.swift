// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Foundation
import PushModel
import RegistrarAccess

struct RegistrarKeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "registrar-key",
        abstract: "Makes keys by which backends are known to the registrar.",
        subcommands: [Create.self])

    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints a new key, and the line for registrar.auth.serviceKeysFile.",
            discussion: """
                The key goes to the backend, and is shown this once. The line, which holds only its \
                hash, goes to the file: by --append, or by hand.
                """)

        @Option(help: "The name of the caller in logs, such as home-backend.")
        var id: String

        @Option(
            name: .customLong("app"),
            help: "An app that it may write to; may be repeated. * stands for all.")
        var apps: [String]

        @Option(help: ArgumentHelp("The file to append the line to.", valueName: "file"))
        var append: String?

        func run() throws {
            guard let key = ServiceKey.make(id: id, apps: apps == ["*"] ? [] : apps) else {
                throw ValidationError(
                    "--id must be 1 to 64 of A-Z a-z 0-9 . _ ~ -, and each --app an app's bundle "
                        + "identifier or *")
            }
            if let append {
                let line = Data("\(key.line)\n".utf8)
                if let file = FileHandle(forWritingAtPath: append) {
                    try file.seekToEnd()
                    try file.write(contentsOf: line)
                    try file.close()
                } else {
                    guard FileManager.default.createFile(atPath: append, contents: line) else {
                        throw ValidationError("--append: \(append) cannot be written")
                    }
                }
                print(key.key.text)
            } else {
                print("key   \(key.key.text)")
                print("line  \(key.line)")
            }
        }
    }
}
