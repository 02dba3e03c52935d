// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Telemetry
internal import Testing

@testable internal import Worker

@Suite struct `Metrics reference` {
    /// `make docs` runs this test with `WRITE_DOCS`, and the page is rewritten.
    @Test func `the page of metrics is what the table of metrics says`() throws {
        let page = Repository.root.appending(path: "docs/metrics.md")
        if ProcessInfo.processInfo.environment["WRITE_DOCS"] != nil {
            try WorkerMetrics.reference.write(to: page, atomically: true, encoding: .utf8)
        }
        let written = try String(contentsOf: page, encoding: .utf8)
        #expect(written == WorkerMetrics.reference, "run `make docs`")
    }

    @Test func `each metric has a name of its own, as Prometheus wants it`() {
        let definitions = WorkerMetrics.definitions
        #expect(Set(definitions.map(\.name)).count == definitions.count)
        for definition in definitions {
            #expect(definition.name.wholeMatch(of: /[a-z][a-z0-9_]*/) != nil, "\(definition.name)")
            #expect(
                definition.name.hasSuffix("_total") == (definition.kind == .counter),
                "\(definition.name)")
            #expect(
                definition.name.hasSuffix("_info") == (definition.kind == .info),
                "\(definition.name)")
            #expect(definition.help.hasSuffix("."), "\(definition.name) is told in a sentence")
        }
    }
}
