// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

/// A checker that shares code with the worker would make the worker's mistakes too. The package
/// manager does not hold every import against the manifest, so the sources are read.
@Suite struct `What the lab imports` {
    private static let lab = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Sources/Lab")

    private func imports(of folder: URL) throws -> Set<String> {
        let files = try #require(FileManager.default.enumerator(atPath: folder.path))
        var modules: Set<String> = []
        for case let file as String in files where file.hasSuffix(".swift") {
            let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
            for line in text.split(separator: "\n") {
                if let found = line.wholeMatch(of: /(?:\w+ )?import (\w+)/) {
                    modules.insert(String(found.1))
                }
            }
        }
        return modules
    }

    @Test func `the checker shares nothing with the worker but the binding to librdkafka`() throws {
        #expect(try imports(of: Self.lab.appending(path: "Checker")) == ["Foundation", "Rdkafka"])
    }

    @Test func `nothing of the lab is built on the worker or its pipeline`() throws {
        let modules = try imports(of: Self.lab)
        #expect(modules.isSuperset(of: ["Checker", "FleetKit", "APNSSimulator"]))
        let workers = [
            "Worker", "Pipeline", "Audience", "Planning", "Delivery", "Ledger", "APNSDelivery",
        ]
        #expect(modules.isDisjoint(with: workers))
    }
}
