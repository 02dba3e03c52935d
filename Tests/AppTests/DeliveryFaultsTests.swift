// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

/// docs/delivery.md says of each fault whom it touches, and what has tried it.
@Suite struct `The faults of docs/delivery.md` {
    private struct Row {
        var fault: Substring
        var triedBy: Substring
    }

    private static func rows() throws -> [Row] {
        let page = try Repository.text("docs/delivery.md")
        let section = try #require(page.firstRange(of: "\n## Faults and whom they touch\n"))
        let rest = page[section.upperBound...]
        let text = rest[..<(rest.firstRange(of: "\n## ")?.lowerBound ?? rest.endIndex)]
        return text.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: " | ")
            guard cells.count == 5, line.hasPrefix("| "), !line.hasPrefix("| fault ") else {
                return nil
            }
            return Row(fault: cells[0].dropFirst(2), triedBy: cells[4].dropLast(2))
        }
    }

    /// The names of the tests and procedures that are written in Python.
    private static func python() throws -> Set<String> {
        var names: Set<String> = []
        for path in Repository.files(in: ["Tests"], where: { $0.hasSuffix(".py") }) {
            let text = try Repository.text(path)
            let isDrill = path == "Tests/Deploy/drill.py"
            for match in text.matches(of: /def (\w+)\(/)
            where isDrill || match.1.hasPrefix("test_") {
                names.insert(String(match.1))
            }
        }
        return names
    }

    @Test func `each fault names tests that exist, or says that nobody has tried it`() throws {
        let known = Set(try Repository.tests().values.joined()).union(try Self.python())
        let rows = try Self.rows()
        #expect(rows.count >= 40)
        for row in rows where !row.triedBy.hasPrefix("not tried: ") {
            let names = row.triedBy.matches(of: /`([^`]+)`/).map { String($0.1) }
            #expect(!names.isEmpty, "\(row.fault) is tried by nothing")
            for name in names {
                #expect(known.contains(name), "\(row.fault): no test is called so: \(name)")
            }
        }
        #expect(rows.count { $0.triedBy.hasPrefix("not tried: ") } <= 2)
        #expect(Set(rows.map(\.fault)).count == rows.count)
    }
}
