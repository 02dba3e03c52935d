// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import FleetKit

@Suite struct `Unacknowledged traffic` {
    private let start = ContinuousClock.now

    @Test func `a Kafka that acknowledges nothing is told after two seconds, with the cause`() {
        var watch = AcknowledgementWatch(now: start)
        watch.looked(acknowledged: 0, waiting: 7, now: start + .milliseconds(1999))
        #expect(
            watch.trouble(waiting: 7, cause: nil, now: start + .milliseconds(1999)) == nil)
        #expect(
            watch.trouble(waiting: 7, cause: nil, now: start + .seconds(2))
                == "Kafka has acknowledged none of 7 records for 2 s")
        #expect(
            watch.trouble(
                waiting: 7, cause: "kafka:9092 takes no connection", now: start + .seconds(9))
                == "Kafka has acknowledged none of 7 records for 9 s: kafka:9092 takes no connection"
        )
    }

    @Test func `an acknowledgement ends the silence, and where nothing waits there is none`() {
        var watch = AcknowledgementWatch(now: start)
        watch.looked(acknowledged: 1, waiting: 7, now: start + .seconds(5))
        #expect(watch.trouble(waiting: 7, cause: nil, now: start + .seconds(6)) == nil)
        watch.looked(acknowledged: 0, waiting: 0, now: start + .seconds(60))
        #expect(watch.trouble(waiting: 1, cause: nil, now: start + .seconds(61)) == nil)
    }
}
