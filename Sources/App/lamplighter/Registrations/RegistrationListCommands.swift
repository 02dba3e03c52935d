// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint
import Foundation
import Glibc
import Worker

extension RegistrationsCommand {
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Prints the tokens that are registered, a line each, and how many there are.",
            discussion: """
                No worker is asked: the registrations topic is read twice, to its end. Of a token, the \
                first 16 digits of its SHA-256 are shown. Controls without a token are left out.
                """)

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var filter: RegistrationFilter

        @Flag(help: "Only how many there are, by app, environment and class.")
        var count = false

        @Flag(help: "One JSON object a line; the last one is the summary.")
        var json = false

        func run() async throws {
            let matcher = try filter.matcher()
            let listing = RegistrationListing(try options.load())
            var counts = RegistrationCounts()
            try listing.forEach(matcher) { target in
                counts.count(target)
                if !count { print(json ? try target.json(hasToken: false) : target.line) }
            }
            if json {
                print(try counts.json(unreadable: listing.unreadable))
            } else {
                for line in counts.lines(unreadable: listing.unreadable) { print(line) }
            }
        }
    }

    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export",
            abstract: "Writes what is registered to a file, one JSON object for each token.",
            discussion: """
                The file must not exist, and only this user can read it. It has token IDs; with --tokens \
                the tokens themselves, with which whoever has a signing key can send pushes. \
                `registrations import --format ndjson` reads what such a file has of devices.
                """)

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var filter: RegistrationFilter

        @Option(help: ArgumentHelp("The file to write.", valueName: "file"))
        var to: String

        @Flag(help: "With the tokens.")
        var tokens = false

        func run() async throws {
            let matcher = try filter.matcher()
            let listing = RegistrationListing(try options.load())
            let file = try PrivateFile(to)
            var counts = RegistrationCounts()
            do {
                try listing.forEach(matcher) { target in
                    counts.count(target)
                    try file.write(try target.json(hasToken: tokens))
                }
                try file.close()
            } catch {
                // Half an export would look like a whole one.
                file.remove()
                throw error
            }
            for line in counts.lines(unreadable: listing.unreadable) { print(line) }
        }
    }
}

/// A new file that its user alone can read.
final class PrivateFile {
    private let path: String
    private let handle: FileHandle
    private var buffer = Data()

    private static let bufferBytes = 64 << 10

    init(_ path: String) throws {
        self.path = path
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let cause = String(cString: strerror(errno))
            throw Failure(
                .unreadableInput,
                "\(path) cannot be made: \(cause). Name a file that does not exist")
        }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Writes a line.
    func write(_ line: String) throws {
        buffer.append(contentsOf: line.utf8)
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= Self.bufferBytes { try flush() }
    }

    func close() throws {
        try flush()
        try handle.close()
    }

    func remove() { unlink(path) }

    private func flush() throws {
        do { try handle.write(contentsOf: buffer) } catch {
            throw Failure(.unavailable, "\(path) cannot be written: \(error.localizedDescription)")
        }
        buffer.removeAll(keepingCapacity: true)
    }
}
