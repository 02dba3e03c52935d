// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import OTLPExporter
import PushModel
import Telemetry
import Testing

/// What is posted to a collector, and what becomes of its answers.
@Suite(.serialized) struct `A collector` {
    private func collector(
        _ endpoint: String, headersFile: String? = nil, exportTimeMax: Duration = .seconds(10)
    ) -> Collector {
        Collector(
            CollectorSettings(
                endpoint: endpoint, headersFile: headersFile, caFile: nil, interval: .seconds(15),
                resource: OTLPResource(attributes: [], version: "1")),
            exportTimeMax: exportTimeMax)
    }

    private func export(_ collector: Collector) -> Collector.Result {
        let family = MetricFamily(
            MetricDefinition("a", .gauge, "A."), [MetricFamily.Series(.integer(1))])
        return collector.export(
            [family], from: WallTime(milliseconds: 1), to: WallTime(milliseconds: 2))
    }

    private func spans(_ count: Int) -> [Span] {
        (1...count).map { number in
            Span(
                "event", .consumer, trace: TraceID(high: 1, low: 1),
                id: SpanID(rawValue: UInt64(number)), parent: nil,
                start: MonotonicTime(nanoseconds: 0), end: MonotonicTime(nanoseconds: 0))
        }
    }

    @Test func `each signal is posted to its own path, with the headers of the file`() throws {
        let standIn = try CollectorStandIn()
        let file = try standIn.write("Authorization: Bearer one\n", to: "headers")
        // A slash at the end makes no difference.
        let collector = collector("\(standIn.endpoint)/otlp/", headersFile: file)
        #expect(export(collector).outcome == .delivered)
        // A rotated secret is used without a restart.
        _ = try standIn.write("Authorization: Bearer two\n", to: "headers")
        let result = collector.export(spans(1), wallStart: 0) { _, _ in }
        #expect(result.outcome == .delivered)
        let requests = standIn.requests
        #expect(requests.map(\.path) == ["/otlp/v1/metrics", "/otlp/v1/traces"])
        #expect(requests.allSatisfy { $0.headers["content-type"] == "application/x-protobuf" })
        #expect(requests.map { $0.headers["authorization"] } == ["Bearer one", "Bearer two"])
        #expect(requests.allSatisfy { $0.bytes > 0 })
    }

    @Test func `a large export does not wait for leave to send its body`() throws {
        let standIn = try CollectorStandIn()
        let large = spans(512).map { span in
            var span = span
            span.attributes = [Span.Attribute("a", .text(String(repeating: "x", count: 4096)))]
            return span
        }
        let result = collector(standIn.endpoint).export(large, wallStart: 0) { _, _ in }
        #expect(result.outcome == .delivered)
        let request = try #require(standIn.requests.first)
        #expect(request.bytes > 1 << 20 && request.headers["expect"] == nil)
    }

    @Test func `a refusal is told by its status, with how long to wait`() throws {
        let standIn = try CollectorStandIn(.status(503, retryAfter: 17))
        let result = export(collector(standIn.endpoint))
        #expect(result.outcome == .refused)
        #expect(result.cause == "the collector answers 503")
        #expect(result.retryAfter == .seconds(17))
        standIn.behave(.status(429, retryAfter: 64_800))
        #expect(export(collector(standIn.endpoint)).retryAfter == .seconds(60))
        standIn.behave(.status(302))
        #expect(export(collector(standIn.endpoint)).outcome == .refused)
    }

    @Test func `spans go in batches, and what is left after a failure is lost and counted`() throws
    {
        let standIn = try CollectorStandIn()
        var counts: [ExportOutcome: Int] = [:]
        let collector = collector(standIn.endpoint)
        _ = collector.export(spans(1200), wallStart: 0) { count, outcome in
            counts[outcome, default: 0] += count
        }
        #expect(counts == [.delivered: 1200])
        #expect(standIn.requests.count == 3)
        standIn.behave(.status(500))
        _ = collector.export(spans(1200), wallStart: 0) { count, outcome in
            counts[outcome, default: 0] += count
        }
        #expect(counts == [.delivered: 1200, .refused: 1200])
        #expect(standIn.requests.count == 4)
    }

    @Test func `a collector that hangs, or is not there, costs a bounded time`() throws {
        let standIn = try CollectorStandIn(.silence)
        let stopwatch = Stopwatch()
        #expect(export(collector(standIn.endpoint)).outcome == .unanswered)
        #expect(stopwatch.time < .seconds(40))
        // Nobody listens on the port of discard.
        let result = export(collector("http://127.0.0.1:9"))
        #expect(result.outcome == .unanswered && result.cause?.isEmpty == false)
    }

    @Test func `all requests of an export have one deadline together`() throws {
        let standIn = try CollectorStandIn(.slow(seconds: 0.4))
        let collector = collector(standIn.endpoint, exportTimeMax: .seconds(1))
        var counts: [ExportOutcome: Int] = [:]
        // As many as the queue keeps: four requests.
        let result = collector.export(spans(2048), wallStart: 0) { count, outcome in
            counts[outcome, default: 0] += count
        }
        #expect(result.outcome == .unanswered && result.cause?.isEmpty == false)
        #expect(counts[.unanswered, default: 0] >= 1024, "three of them take 1.2 s at least")
        #expect(counts.values.reduce(0, +) == 2048, "what is left is counted")
    }

    @Test func `without its headers nothing is sent to a collector`() throws {
        let standIn = try CollectorStandIn()
        let result = export(
            collector(standIn.endpoint, headersFile: "/nowhere/headers"))
        #expect(result.outcome == .unanswered)
        #expect(result.cause == "otlp.headersFile cannot be read")
        #expect(standIn.requests.isEmpty)
    }
}
