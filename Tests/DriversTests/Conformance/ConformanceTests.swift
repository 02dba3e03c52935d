// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Testing

/// Every behaviour of APNs against both transports; docs/transports.md tells what holds.
@Suite struct `Conformance of the transports` {
    @Test(arguments: Behaviour.all, TransportKind.allCases)
    func `a transport keeps the promise of each behaviour of a server`(
        _ behaviour: Behaviour, _ kind: TransportKind
    ) throws {
        let report = try behaviour.run(kind).close()
        let breaches = behaviour.promise(of: kind).breaches(in: report)
        #expect(breaches == [], "\(report)")
    }

    @Test func `the page is what the suite verifies`() throws {
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../../docs/transports.md"
        ).standardized
        if ProcessInfo.processInfo.environment["WRITE_DOCS"] != nil {
            try TransportsPage.text.write(to: page, atomically: true, encoding: .utf8)
        }
        let written = try String(contentsOf: page, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        let told = TransportsPage.text.split(separator: "\n", omittingEmptySubsequences: false)
        let difference = zip(written, told).first { $0 != $1 }
        #expect(difference == nil, "run `WRITE_DOCS=1 make conformance`")
        #expect(written.count == told.count, "run `WRITE_DOCS=1 make conformance`")
    }
}
