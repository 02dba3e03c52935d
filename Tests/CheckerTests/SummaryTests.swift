// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import Checker

@Suite struct `The report's JSON` {
    @Test func `the report's JSON decodes to the counts that it was made of`() throws {
        var report = CheckReport()
        (report.events, report.obligations, report.accepted) = (1, 2, 3)
        (report.coalesced, report.expired, report.suppressed) = (4, 5, 6)
        (report.deadLettered, report.withdrawn, report.truncated) = (7, 8, 9)
        (report.lost, report.ambiguous, report.acceptedPushes) = (10, 11, 12)
        (report.duplicates, report.kills) = (13, 14)
        (report.pushesPerSecond, report.p50ms, report.p99ms) = (15.5, 16.5, nil)
        let decoded = try JSONDecoder().decode(CheckReport.self, from: Data(report.json.utf8))
        #expect(decoded.json == report.json)
    }
}

@Suite struct `The summary for people` {
    @Test func `the summary for people sets thousands apart and counts one kill as one`() {
        var report = CheckReport()
        report.obligations = 1_234_567
        report.kills = 1
        report.acceptedPushes = 1000
        report.duplicates = 4
        #expect(
            report.summary == "1,234,567 obligations · 1 kill · 0 lost · 0.4 % duplicates")
        report.obligations = 100
        report.kills = 0
        report.lost = 1000
        report.truncated = 20
        #expect(
            report.summary
                == "100 obligations · 0 kills · 1,000 lost · 20 dropped by the broker · "
                + "0.4 % duplicates")
    }
}
