// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Telemetry
internal import Testing

/// What is exported, read by another reader of protobuf. Tests/Surfaces reads it with OpenTelemetry's
/// own.
@Suite struct `Telemetry encoding` {
    private let resource = OTLPResource(
        attributes: [Span.Attribute("service.name", .text("lamplighter"))], version: "1.2.3")
    private let start = WallTime(milliseconds: 1_700_000_000_000)
    private let end = WallTime(milliseconds: 1_700_000_015_000)

    private func family(
        _ name: String, _ kind: MetricFamily.Kind, _ series: [MetricFamily.Series],
        labels: [String] = []
    ) -> MetricFamily {
        MetricFamily(MetricDefinition(name, kind, labels: labels, "What it says."), series)
    }

    /// The metrics of a request, after a look at what surrounds them.
    private func metrics(_ request: [UInt8]) throws -> [ProtobufMessage] {
        let signals = try ProtobufMessage(request).message(1)
        #expect(try signals.message(1).attributes(1) == ["service.name": "lamplighter"])
        let scope = try signals.message(2)
        #expect(try scope.message(1).text(1) == "lamplighter")
        #expect(try scope.message(1).text(2) == "1.2.3")
        return try scope.messages(2)
    }

    private func encoded(_ families: MetricFamily...) throws -> [ProtobufMessage] {
        let requests = OTLPMetrics.requests(families, of: resource, from: start, to: end)
        #expect(requests.count == 1)
        return try metrics(try #require(requests.first))
    }

    @Test func `a counter is a cumulative sum that only grows`() throws {
        let metric = try #require(
            try encoded(
                family(
                    "lamplighter_pushes_total", .counter,
                    [
                        .init(.integer(3), [("outcome", "accepted")]),
                        .init(.integer(0), [("outcome", "")]),
                    ], labels: ["outcome"])
            ).first)
        #expect(metric.text(1) == "lamplighter_pushes_total")
        #expect(metric.text(2) == "What it says.")
        let sum = try metric.message(7)
        #expect(sum.number(2) == 2 && sum.number(3) == 1)
        let points = try sum.messages(1)
        #expect(points.map { $0.number(6) } == [3, 0])
        #expect(points[0].number(2) == 1_700_000_000_000_000_000)
        #expect(points[0].number(3) == 1_700_000_015_000_000_000)
        #expect(try points[0].attributes(7) == ["outcome": "accepted"])
        #expect(try points[1].attributes(7) == ["outcome": ""])
    }

    @Test func `a gauge is a number of either type, and an information is a gauge`() throws {
        let all = try encoded(
            family("a_bytes", .gauge, [.init(.integer(-7))]),
            family("b_seconds", .gauge, [.init(.number(0.25))]),
            family("c_info", .info, [.init(.integer(1), [("version", "1")])], labels: ["version"]))
        let points = try all.map { try $0.message(5).message(1) }
        #expect(points[0].number(6) == UInt64(bitPattern: -7))
        #expect(points[1].number(4) == 0.25.bitPattern)
        #expect(points[2].number(6) == 1)
        #expect(all.map { $0.text(3) } == ["By", "s", nil])
    }

    @Test func `a histogram has a count for each bound, and one for what is above`() throws {
        var histogram = LatencyHistogram()
        for nanoseconds in [100_000, 300_000, 2_000_000, 700_000_000, .max] as [Int64] {
            histogram.add(nanoseconds: nanoseconds)
        }
        let metric = try #require(
            try encoded(family("wait_seconds", .histogram, [.init(.latency(histogram))])).first)
        let data = try metric.message(9)
        #expect(data.number(2) == 2)
        let point = try data.message(1)
        let bounds = point.packed(7).map { Double(bitPattern: $0) }
        let counts = point.packed(6)
        #expect(point.number(4) == 5)
        #expect(counts.count == bounds.count + 1)
        #expect(counts.reduce(0, +) == 5)
        #expect(bounds == bounds.sorted() && bounds.first == 0.00025)
        #expect(counts.first == 1 && counts.last == 1)
        // The bounds are those that Prometheus is given.
        let text = MetricsText.text(
            [family("wait_seconds", .histogram, [.init(.latency(histogram))])], as: .prometheus)
        #expect(text.split(separator: "\n").count { $0.contains("_bucket") } == counts.count)
        #expect(Double(bitPattern: try #require(point.number(5))) > 0.7)
    }

    @Test func `a family without series is left out, and no request is empty`() {
        #expect(
            OTLPMetrics.requests([family("a", .gauge, [])], of: resource, from: start, to: end)
                .isEmpty)
    }

    @Test func `metrics that are many are several requests, none larger than may be`() throws {
        func series(_ count: Int) -> [MetricFamily.Series] {
            (0..<count).map { .init(.integer($0), [("n", "\($0)")]) }
        }
        let families = [
            family("a", .gauge, series(3), labels: ["n"]),
            family("b_total", .counter, series(12), labels: ["n"]),
            family("c", .gauge, series(1), labels: ["n"]),
        ]
        let requests = OTLPMetrics.requests(
            families, of: resource, from: start, to: end, pointsMax: 5)
        var points: [String: [UInt64?]] = [:]
        for request in requests {
            var count = 0
            for metric in try metrics(request) {
                let data = try metric.messages(5) + metric.messages(7)
                let found = try #require(data.first).messages(1).map { $0.number(6) }
                count += found.count
                points[try #require(metric.text(1)), default: []] += found
            }
            #expect((1...5).contains(count))
        }
        #expect(requests.count == 4)
        #expect(points["a"]?.count == 3 && points["c"] == [0])
        #expect(points["b_total"] == (0..<12).map { UInt64($0) })
    }

    @Test func `a span has its identifiers, its times on the wall clock, and its failure`() throws {
        var push = Span(
            "push", .client, trace: TraceID(high: 1, low: 2), id: SpanID(rawValue: 3),
            parent: SpanID(rawValue: 4), start: MonotonicTime(nanoseconds: 50),
            end: MonotonicTime(nanoseconds: 70))
        push.attributes = [
            Span.Attribute("text", .text("é")), Span.Attribute("negative", .integer(-1)),
            Span.Attribute("zero", .integer(0)), Span.Attribute("no", .flag(false)),
        ]
        push.failure = "BadDeviceToken"
        let root = Span(
            "event", .consumer, trace: TraceID(high: 1, low: 2), id: SpanID(rawValue: 4),
            parent: nil, start: MonotonicTime(nanoseconds: 0), end: MonotonicTime(nanoseconds: 90))
        let spans = try metrics(
            OTLPSpans.request([push, root], of: resource, wallStart: 1_000_000))
        #expect(spans[0].data(1) == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2])
        #expect(spans[0].data(2) == [0, 0, 0, 0, 0, 0, 0, 3])
        #expect(spans[0].data(4) == spans[1].data(2))
        #expect(spans[1].data(4) == nil)
        #expect(spans.map { $0.text(5) } == ["push", "event"])
        #expect(spans.map { $0.number(6) } == [3, 5])
        #expect(spans.map { $0.number(7) } == [1_000_050, 1_000_000])
        #expect(spans.map { $0.number(8) } == [1_000_070, 1_000_090])
        #expect(
            try spans[0].attributes(9)
                == ["text": "é", "negative": "-1", "zero": "0", "no": "false"])
        #expect(try spans[0].message(15).text(2) == "BadDeviceToken")
        #expect(try spans[0].message(15).number(3) == 2)
        #expect(try spans[1].messages(15).isEmpty)
    }

    /// Whatever is written is read back as it was.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `random spans are read back as they were`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        func text() -> String {
            let alphabet: [Unicode.Scalar] = ["a", "\0", "é", "🎈", "\n", "\""]
            return (0..<random.next(below: 300)).reduce(into: "") { text, _ in
                text.unicodeScalars.append(alphabet[Int(random.next(below: 6))])
            }
        }
        let spans = (0..<random.next(below: 40)).map { _ in
            var span = Span(
                text(), [.internal, .client, .consumer][Int(random.next(below: 3))],
                trace: TraceID(high: random.next(), low: random.next()),
                id: SpanID(rawValue: random.next()), parent: nil,
                start: MonotonicTime(nanoseconds: Int64(random.next(below: 1 << 62))),
                end: MonotonicTime(nanoseconds: Int64(random.next(below: 1 << 62))))
            for number in 0..<random.next(below: 5) {
                let bits = random.next() >> random.next(below: 64)
                span.attributes.append(
                    Span.Attribute(
                        "a\(number)",
                        number % 2 == 0
                            ? .text(text()) : .integer(Int(truncatingIfNeeded: bits))))
            }
            return span
        }
        let request = OTLPSpans.request(spans, of: resource, wallStart: 0)
        let read = try ProtobufMessage(request).message(1).message(2).messages(2)
        #expect(read.count == spans.count)
        for (span, read) in zip(spans, read) {
            #expect((read.text(5) ?? "") == span.name)
            #expect(read.data(1) == span.trace.bytes && read.data(2) == span.id.bytes)
            #expect((read.number(7) ?? 0) == UInt64(span.start.nanoseconds))
            let expected = span.attributes.map { attribute in
                switch attribute.value {
                case .text(let text): text
                case .integer(let integer): "\(integer)"
                case .flag(let flag): "\(flag)"
                }
            }
            let attributes = try read.attributes(9)
            #expect(span.attributes.map { attributes[$0.name] } == expected)
        }
    }
}
