// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint
import Foundation
import PushModel
import RegistrarRules

extension RegistrationsCommand {
    struct Coverage: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "coverage",
            abstract:
                "Says how many of another sender's installations are registered, by class of token.",
            discussion: """
                The file has the installations that the other sender knows to be active, one a line, \
                by the identifiers that the app registers with; - is standard input. Of each 8 bytes \
                of a hash are in memory. No worker is asked: the registrations topic is read twice, \
                to its end. Those of which only an import of the other sender's rows is there are \
                counted apart, since their phones have not registered yet.

                Exit codes: 0; 65 the file cannot be read.
                """)

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var filter: RegistrationFilter

        @Argument(help: "The file with the installations.")
        var file: String

        @Flag(help: "Print the result as one JSON object.")
        var json = false

        func run() async throws {
            let matcher = try filter.matcher()
            let listing = RegistrationListing(try options.load())
            var coverage = try RegistrationCoverage(InstallationList(file))
            try listing.forEach(matcher) { coverage.note($0) }
            if json {
                print(try coverage.json(unreadable: listing.unreadable))
            } else {
                for line in coverage.lines(unreadable: listing.unreadable) { print(line) }
            }
        }
    }
}

/// Hashes of the installations of a file, sorted, so that each has a number.
struct InstallationList {
    private static let installationsMax = 100_000_000
    /// As long as an identifier in a registration's key may be, and more.
    private static let lineBytesMax = 1024

    private let hashes: [UInt64]
    private let seed = UInt64.random(in: .min ... .max)

    /// - Parameter path: `-` for standard input.
    init(_ path: String) throws {
        let input = try InputLines(path, lineBytesMax: Self.lineBytesMax)
        var hashes: [UInt64] = []
        while try input.next() {
            Self.add(input.line, to: &hashes, seed)
            guard hashes.count <= Self.installationsMax else {
                throw input.failure(
                    "more than \(Self.installationsMax) installations: give it in parts")
            }
        }
        hashes.sort()
        var last: UInt64?
        hashes.removeAll { hash in
            defer { last = hash }
            return hash == last
        }
        guard !hashes.isEmpty else { throw Failure(.unreadableInput, "\(path) has no line") }
        self.hashes = hashes
    }

    private static func add(_ line: [UInt8], to hashes: inout [UInt64], _ seed: UInt64) {
        func isOuter(_ byte: UInt8) -> Bool {
            byte == UInt8(ascii: " ") || byte == 0x09 || byte == 0x0D
        }
        guard let first = line.firstIndex(where: { !isOuter($0) }),
            let last = line.lastIndex(where: { !isOuter($0) })
        else { return }
        line[first...last].withUnsafeBytes { hashes.append(StableHash.hash64($0, seed: seed)) }
    }

    var count: Int { hashes.count }

    /// The number of an installation, from 0; nil if it is not in the file.
    func number(of installation: String) -> Int? {
        let hash = Array(installation.utf8).withUnsafeBytes { StableHash.hash64($0, seed: seed) }
        var (low, high) = (0, hashes.count)
        while low < high {
            let middle = (low + high) / 2
            if hashes[middle] < hash { low = middle + 1 } else { high = middle }
        }
        return low < hashes.count && hashes[low] == hash ? low : nil
    }
}

/// Which installations of a list are registered, by class.
struct RegistrationCoverage {
    private let list: InstallationList
    /// By class, a byte for each installation: 0 none, 1 only imported, 2 registered by the app.
    private var classes: [TokenClass: [UInt8]] = [:]
    private var any: [UInt8]

    init(_ list: InstallationList) {
        self.list = list
        any = Array(repeating: 0, count: list.count)
    }

    mutating func note(_ target: ListedTarget) {
        guard let number = list.number(of: target.head.key.installation) else { return }
        let mark: UInt8 = target.isImported ? 1 : 2
        any[number] = max(any[number], mark)
        var marks =
            classes.removeValue(forKey: target.tokenClass)
            ?? Array(
                repeating: 0, count: list.count)
        marks[number] = max(marks[number], mark)
        classes[target.tokenClass] = marks
    }

    private struct Row {
        var name: String
        var registered: Int
        var imported: Int
    }

    private var rows: [Row] {
        func row(_ name: String, _ marks: [UInt8]) -> Row {
            Row(
                name: name, registered: marks.count { $0 == 2 },
                imported: marks.count { $0 == 1 })
        }
        return classes.sorted { $0.key.name < $1.key.name }.map { row($0.key.name, $0.value) }
            + [row("any class", any)]
    }

    func lines(unreadable: Int) -> [String] {
        [list.count.counted("installation")]
            + rows.map { row in
                "\(row.name)  \(row.registered.withCommas) registered (\(percent(row.registered)))"
                    + (row.imported > 0 ? ", \(row.imported.withCommas) only imported" : "")
            }
            + (unreadable > 0 ? ["\(unreadable.counted("registration")) unreadable"] : [])
    }

    private func percent(_ part: Int) -> String {
        let tenths = part * 1000 / list.count
        return "\(tenths / 10).\(tenths % 10) %"
    }

    func json(unreadable: Int) throws -> String {
        try JSONLine.of(
            Summary(
                installations: list.count, unreadable: unreadable,
                registered: count(\.registered), onlyImported: count(\.imported)))
    }

    private func count(_ path: KeyPath<Row, Int>) -> [String: Int] {
        Dictionary(uniqueKeysWithValues: rows.map { ($0.name, $0[keyPath: path]) })
    }

    private struct Summary: Encodable {
        let installations, unreadable: Int
        let registered, onlyImported: [String: Int]
    }
}
