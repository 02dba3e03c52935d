// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import PushModel
internal import Testing

@testable internal import Worker

@Suite struct `The planner and restrictions` {
    private static let app = Restriction.Scope.pushes(app: "com.example.Home", tokenClass: nil)

    @Test(arguments: [
        ("anna", "by an operator", "until=resumed"),
        (
            ConfiguredRestriction.by, "by the configuration",
            "until=taken out of planning.restrictions"
        ),
    ])
    func `the log says who has restricted something, and what ends it`(
        author: String, who: String, until: String
    ) {
        let lines = LogLines()
        let logger = Logger(label: "planner") { _ in LineHandler(lines: lines) }
        var seen = SeenRestrictions()
        seen.tell(
            [Self.app: Restriction(.pause, by: author, at: WallTime(milliseconds: 0))],
            logger: logger)
        let told = lines.taken()
        #expect(told.count == 1 && told[0].hasPrefix("notice restricted \(who) ["), "\(told)")
        #expect(told[0].contains("\(until), ") && told[0].contains("by=\(author), "), "\(told)")
    }
}
