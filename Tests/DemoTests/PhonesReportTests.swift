// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable import Demo

@Suite struct `The report of the phones` {
    private let good =
        #"{"devices":200,"acknowledged":1629,"retries":9,"failed":0,"failures":[],"compared":200,"#
        + #""mismatches":[],"pushes":3385,"latePushes":0,"unknownPushes":0,"devicesReached":199}"#

    @Test func `it is the last line of what they said`() throws {
        let report = try #require(PhonesReport(output: "{\"acknowledged\":1}\n\(good)\n"))
        #expect(report.isGood && report.acknowledged == 1629)
        #expect(report.text.hasSuffix("all are registered as they show"))
    }

    @Test func `it is bad if a phone is registered otherwise, or was refused`() throws {
        for (part, other) in [
            (#""mismatches":[]"#, #""mismatches":["device-7-1"]"#),
            (#""failed":0"#, #""failed":1"#),
        ] {
            let report = try #require(PhonesReport(output: good.replacing(part, with: other)))
            #expect(!report.isGood && report.text.contains("WRONG"))
        }
    }

    @Test func `phones that were ended before their report have said nothing`() {
        #expect(PhonesReport(output: "{\"acknowledged\":1,\"retries\":0}\n") == nil)
        #expect(PhonesReport(output: "") == nil)
    }
}
