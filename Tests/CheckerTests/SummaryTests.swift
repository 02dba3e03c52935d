// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import Checker

@Suite struct `Verdict for people` {
    @Test func `sets thousands apart and counts one kill as one`() {
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
