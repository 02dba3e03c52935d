// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Intake
import PushModel
import Testing

@testable import Configuration
@testable import Worker
@testable import lamplighter

@Suite struct `The census of dead registrations` {
    private static let now = WallTime(rfc3339: "2026-11-22T12:00:00Z")!
    private static let app = "com.example.Home"

    /// A topic each, written in order.
    private final class Topics {
        var census: RegistrationCensus

        init(_ configuration: Configuration, isWanted: String? = nil) {
            census = RegistrationCensus(
                configuration, deadFor: .seconds(30 * 86_400), now: now
            ) { key in isWanted.map { String(decoding: key, as: UTF8.self).contains($0) } ?? false }
        }

        private func lend(
            _ key: String, _ value: String?,
            _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer?) -> Void
        ) {
            Array(key.utf8).withUnsafeBytes { key in
                guard let value else { return body(key, nil) }
                Array(value.utf8).withUnsafeBytes { body(key, $0) }
            }
        }

        /// - Parameter days: how long ago it was written.
        func suppression(_ token: String, days: Int, registered: String = "2026-01-01T00:00:00Z") {
            lend(
                "production/\(app).push-type.controls/\(token)",
                #"{"v":1,"status":410,"reason":"Unregistered","registeredAt":"\#(registered)"}"#
            ) { key, value in
                census.suppressionRecord(
                    key: key, value: value, partition: 3,
                    timestamp: now + (.zero - .seconds(days * 86_400)))
            }
        }

        func revoke(_ token: String) {
            lend("production/\(app).push-type.controls/\(token)", nil) { key, value in
                census.suppressionRecord(key: key, value: value, partition: 3, timestamp: now)
            }
        }

        func register(
            _ key: String, _ tokens: [String], at time: String = "2026-01-01T00:00:00Z",
            more: String = ""
        ) {
            let targets = tokens.map { #"{"class":"control","token":"\#($0)"}"# }
            write(
                key,
                #"{"v":1,"registeredAt":"\#(time)","targets":["#
                    + targets.joined(separator: ",") + more + "]}")
        }

        func write(_ key: String, _ value: String?) {
            lend("production/\(app)/\(key)", value) { key, value in
                census.registrationRecord(key: key, value: value, partition: 5, timestamp: now)
            }
        }

        var dead: [String] {
            census.deadRegistrations().map { entry in
                #expect(entry.partition == 5)
                return String(decoding: entry.key, as: UTF8.self)
                    .replacing("production/\(app)/", with: "")
            }
        }

        func abandoned(without removed: [String] = []) -> [String] {
            let keys = removed.map { Array("production/\(app)/\($0)".utf8) }
            return census.abandonedSuppressions(without: Set(keys)).map {
                Hexadecimal.encode($0.token.bytes)
            }
        }
    }

    private let configuration: Configuration

    init() throws { configuration = try AppTests.configuration("") }

    @Test func `a registration is dead when each of its tokens has been for long enough`() {
        let topics = Topics(configuration)
        topics.suppression("01", days: 31)
        topics.suppression("02", days: 29)
        topics.register("A/h", ["01"])
        topics.register("B/h", ["02"])
        topics.register("C/h", ["01", "02"])
        topics.register("D/h", ["01", "03"])
        topics.register("E/h", [])
        #expect(topics.dead == ["A/h"])
    }

    @Test func `a token that any registration has brought back since is not dead in another`() {
        let topics = Topics(configuration)
        topics.suppression("01", days: 31)
        topics.register("A/h", ["01"])
        topics.register("B/h", ["01"], at: "2026-02-01T00:00:00Z")
        #expect(topics.dead.isEmpty)
        topics.write("B/h", nil)
        #expect(topics.dead == ["A/h"])
    }

    @Test func `the last record of a key counts, and an unreadable one keeps its key`() {
        let topics = Topics(configuration)
        topics.suppression("01", days: 31)
        topics.register("A/h", ["01"])
        topics.register("A/h", ["03"])
        topics.register("B/h", ["01"])
        topics.write("B/h", "{")
        topics.register("C/h", ["01"])
        topics.write("C/h", nil)
        topics.register("D/h", ["01"], more: #",{"class":"ofALaterRelease","token":"09"}"#)
        #expect(topics.dead.isEmpty)
        #expect(topics.census.unreadable == 1)
    }

    @Test func `a suppression that was taken back kills nothing`() {
        let topics = Topics(configuration)
        topics.suppression("01", days: 31)
        topics.revoke("01")
        topics.register("A/h", ["01"])
        #expect(topics.dead.isEmpty)
    }

    @Test func `a suppression goes only when no registration has its token, however old it is`() {
        let topics = Topics(configuration)
        topics.suppression("01", days: 300)
        topics.suppression("02", days: 31)
        topics.suppression("03", days: 29)
        topics.register("A/h", ["01"])
        topics.register("B/h", ["01", "04"])
        #expect(topics.abandoned() == ["02"])
        // The dead one alone does not free it: another still has the token.
        #expect(topics.dead == ["A/h"])
        #expect(topics.abandoned(without: ["A/h"]) == ["02"])
        #expect(topics.abandoned(without: ["A/h", "B/h"]) == ["01", "02"])
    }

    @Test func `what is asked for by name is kept whatever its tokens are`() {
        let topics = Topics(configuration, isWanted: "/B/")
        topics.register("A/h", ["01"])
        topics.register("B/h", ["02"])
        topics.register("B/i", ["03"])
        #expect(topics.census.wantedRegistrations().count == 2)
    }
}
