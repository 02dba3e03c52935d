// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import KafkaLog
import Testing

@testable import Rdkafka

@Suite struct `What a Kafka client says of failed connections` {
    private let start = ContinuousClock.now

    private func failure(
        _ troubles: ConnectionTroubles, since start: ContinuousClock.Instant?
    ) -> ConnectionFailure? {
        ConnectionFailure(
            lines: troubles.lines(since: start), refusal: troubles.refusal(since: start))
    }

    @Test func `a failure from before the last answer is not the cause of a later silence`() {
        let troubles = ConnectionTroubles()
        troubles.note(CertificateRefusal(broker: "a:9093", code: 10), at: start)
        troubles.note(
            facility: "FAIL", "ssl://a:9093/1: SSL handshake failed: (after 5ms in state CONNECT)",
            at: start)
        troubles.note(
            facility: "FAIL",
            "ssl://b:9093/2: Connect failed: Connection refused (after 0ms in state CONNECT)",
            at: start + .seconds(3600))
        // A command has one outage to tell of, and the certificate tells most.
        #expect(failure(troubles, since: nil)?.kind == .expired)
        #expect(failure(troubles, since: start)?.kind == .expired)
        let later = failure(troubles, since: start + .seconds(1))
        #expect(later?.kind == .refused && later?.broker == "b:9093")
        #expect(failure(troubles, since: start + .seconds(3601)) == nil)
    }

    @Test func `librdkafka's last reason is part of a time-out of which nothing else is known`() {
        let error = KafkaError.unreachable(
            RdkafkaError(.timedOut), lastWords: "ssl://kafka:9093/1: something new")
        #expect(
            error.description.contains(
                "; librdkafka's last reason: ssl://kafka:9093/1: something new): check"))
        #expect(!KafkaError.unreachable(RdkafkaError(.timedOut)).description.contains("reason"))
    }

    @Test func `librdkafka's last words are of the last minute, and without secrets`() {
        let troubles = ConnectionTroubles(redact: { $0.replacing("s3cret", with: "[secret]") })
        troubles.note(
            facility: "FAIL", "[thrd:x]: kafka:9093/1: closed after s3cret was idle", at: start)
        #expect(
            troubles.lastWords(before: start + .seconds(60))
                == "kafka:9093/1: closed after [secret] was idle")
        #expect(troubles.lastWords(before: start + .seconds(61)) == nil)
    }

    @Test func `that an idle connection was closed is nobody's last words`() {
        let troubles = ConnectionTroubles()
        func note(_ words: String) {
            troubles.note(facility: "FAIL", "[thrd:x]: kafka:9093/1: \(words)", at: start)
        }
        note("Disconnected (after 416816ms in state UP)")
        #expect(troubles.lastWords(before: start) == nil)
        note("something new")
        note("Disconnected (after 416816ms in state UP, 1 identical error(s) suppressed)")
        #expect(troubles.lastWords(before: start) == "kafka:9093/1: something new")
        for reason in [
            "Disconnected (after 1ms in state UP)",
            "1 request(s) timed out: disconnect (after 416816ms in state UP)",
        ] {
            note(reason)
            #expect(troubles.lastWords(before: start) == "kafka:9093/1: \(reason)")
        }
    }

    @Test(arguments: [
        ("PROTOERR", "Protocol parse failure for ApiVersion v3 at 4/6 (rd_kafka_x:1) (incorrect?)"),
        (
            "PROTOUFLOW",
            "Protocol read buffer underflow for Metadata v4 at 4/6 (rd_kafka_x:1): expected 4 "
                + "bytes > 2 remaining bytes (incorrect broker.version.fallback?)"
        ),
        ("FAIL", "ApiVersionRequest failed: Local: Read underflow: probably due to broker version"),
    ])
    func `a line about an answer that cannot be read is kept and understood`(
        facility: String, words: String
    ) {
        let troubles = ConnectionTroubles()
        for _ in 1...20 {
            troubles.note(
                facility: facility, "[thrd:kafka:9092/1]: kafka:9092/1: \(words)", at: start)
        }
        troubles.note(facility: "PROTO", "[thrd:main]: something else", at: start)
        let failure = failure(troubles, since: nil)
        #expect(failure?.kind == .unreadable && failure?.broker == "kafka:9092")
        #expect(troubles.lines(since: nil).count == 16)
    }

    @Test(arguments: ["GroupCoordinator: ", "GroupCoordinator/2: ", "ssl://"])
    func `a failed connection is named by its address, also the coordinator's`(prefix: String) {
        let line =
            "[thrd:GroupCoordinator]: \(prefix)10.0.0.1:9092: Connect to ipv4#10.0.0.1:9092 failed: "
            + "Connection refused (after 0ms in state CONNECT)"
        let failure = ConnectionFailure(lines: [line], refusal: nil)
        #expect(failure?.kind == .refused && failure?.broker == "10.0.0.1:9092")
    }
}
