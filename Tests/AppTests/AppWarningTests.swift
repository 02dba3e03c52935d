// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
internal import Testing

@testable internal import Worker

@Suite struct `Warnings of events without an app` {
    private let two = "com.example.Home, com.example.New"

    private func warnings(_ events: String, apps: String) throws -> [String] {
        try configuration(
            "kafka: {events: {\(events)}}", ["LAMPLIGHTER_APNS_CREDENTIALS_HOME_APPS": apps]
        ).appWarnings
    }

    @Test func `one app needs no name, and a binding that names one is well`() throws {
        #expect(try warnings("orders: {decode: json}", apps: "com.example.Home").isEmpty)
        #expect(
            try warnings("orders: {decode: json, app: com.example.New}", apps: two).isEmpty)
    }

    @Test func `a topic whose events may name no app is told with what to do`() throws {
        #expect(
            try warnings("lamplighter.events: {decode: json}", apps: two) == [
                "kafka.events[lamplighter.events].app is not set, and 2 apps are configured "
                    + "(com.example.Home, com.example.New): events that name no app become dead "
                    + "letters (missingApp) and reach nobody; set it to the app that they are for, "
                    + "or have every producer name one"
            ])
    }

    @Test func `a topic whose records cannot name an app loses all of them`() throws {
        let warnings = try warnings(
            "orders: {decode: json, subject: \"order-{/id}\"}", apps: two)
        #expect(warnings.count == 1)
        #expect(warnings[0].hasPrefix("kafka.events.orders.app is not set, and 2 apps"))
        #expect(warnings[0].contains("each becomes a dead letter (missingApp)"))
        #expect(warnings[0].hasSuffix("; set it to the app that they are for"))
    }

    @Test func `a topic of keys alone is refused with the same advice`() {
        let error = #expect(throws: (any Error).self) {
            try warnings("orders: {decode: key}", apps: two)
        }
        #expect("\(error as Any)".contains("name one of the 2 configured apps"))
    }
}
