// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable internal import Configuration
@testable internal import Worker

@Suite struct `The spelling of a name` {
    @Test(arguments: [
        ("tokenBad", "BadDeviceToken"), ("ServiceUnavailible", "ServiceUnavailable"),
        ("session", "session.timeout.ms"), ("SESSION_TIMEOUT", "session.timeout.ms"),
        ("registeredNot", "Unregistered"), ("", "BadTopic"),
    ])
    func `the nearest of several is the one it is a slip for, or that has its words`(
        written: String, near: String
    ) {
        let known = [
            "BadTopic", "BadDeviceToken", "ServiceUnavailable", "session.timeout.ms",
            "Unregistered",
        ]
        #expect(Spelling.nearest(to: written, among: known) == near)
    }

    @Test func `an app is found by its last word`() {
        let apps = ["com.example.Garden", "com.example.Home"]
        #expect(Spelling.nearest(to: "org.other.home", among: apps) == "com.example.Home")
        #expect(Spelling.nearest(to: "x", among: []) == nil)
    }
}
