// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Telemetry
internal import Testing

@Suite struct `Metrics as text` {
    private let pushes = MetricFamily(
        MetricDefinition("pushes_total", .counter, labels: ["outcome"], "Pushes\nby \\ outcome."),
        [
            .init(.integer(3), [("outcome", "accepted")]),
            .init(.integer(0), [("outcome", "say \"no\"\\\n")]),
        ])

    @Test func `a counter has its suffix in the family's name for Prometheus alone`() {
        #expect(
            MetricsText.text([pushes], as: .prometheus) == """
                # HELP pushes_total Pushes\\nby \\\\ outcome.
                # TYPE pushes_total counter
                pushes_total{outcome="accepted"} 3
                pushes_total{outcome="say \\"no\\"\\\\\\n"} 0

                """)
        let open = MetricsText.text([pushes], as: .openMetrics)
        #expect(open.hasPrefix("# HELP pushes Pushes"))
        #expect(open.contains("# TYPE pushes counter\npushes_total{"))
        #expect(open.hasSuffix("\n# EOF\n"))
    }

    @Test func `a histogram's buckets grow up to its count`() throws {
        var histogram = LatencyHistogram()
        for nanoseconds in [100_000, 2_000_000, 700_000_000, .max] as [Int64] {
            histogram.add(nanoseconds: nanoseconds)
        }
        let family = MetricFamily(
            MetricDefinition("wait_seconds", .histogram, "How long."), [.init(.latency(histogram))])
        let lines = MetricsText.text([family], as: .prometheus).split(separator: "\n")
        let buckets = lines.filter { $0.hasPrefix("wait_seconds_bucket") }
        let counts = buckets.compactMap { Int($0.split(separator: " ")[1]) }
        #expect(counts == counts.sorted() && counts.first == 1 && counts.last == 4)
        #expect(buckets.first == "wait_seconds_bucket{le=\"0.00025\"} 1")
        #expect(buckets.last == "wait_seconds_bucket{le=\"+Inf\"} 4")
        #expect(lines.last == "wait_seconds_count 4")
    }

    @Test func `a histogram's bounds end below an hour, and what took longer is above them`() throws
    {
        var histogram = LatencyHistogram()
        for seconds in [2, 3000, 3600, 80_000] as [Int64] {
            histogram.add(nanoseconds: seconds * 1_000_000_000)
        }
        let family = MetricFamily(
            MetricDefinition("wait_seconds", .histogram, "How long."), [.init(.latency(histogram))])
        let lines = MetricsText.text([family], as: .prometheus).split(separator: "\n")
        let buckets = lines.filter { $0.hasPrefix("wait_seconds_bucket") }
        #expect(
            buckets.suffix(3) == [
                "wait_seconds_bucket{le=\"2097.152\"} 1", "wait_seconds_bucket{le=\"3145.728\"} 2",
                "wait_seconds_bucket{le=\"+Inf\"} 4",
            ])
        #expect(buckets.contains("wait_seconds_bucket{le=\"2.048\"} 1"), "the rules need this one")
    }

    @Test func `an information is a gauge to Prometheus and an info to OpenMetrics`() {
        let build = MetricFamily(
            MetricDefinition("build_info", .info, labels: ["version"], "The build."),
            [.init(.integer(1), [("version", "1.0")])])
        #expect(MetricsText.text([build], as: .prometheus).contains("# TYPE build_info gauge\n"))
        let open = MetricsText.text([build], as: .openMetrics)
        #expect(open.contains("# TYPE build info\nbuild_info{version=\"1.0\"} 1\n"))
    }

    @Test func `a family without series is left out`() {
        let empty = MetricFamily(MetricDefinition("nothing", .gauge, "Nothing."), [])
        #expect(MetricsText.text([empty], as: .prometheus) == "")
    }

    @Test func `a scraper that accepts OpenMetrics gets that`() {
        let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3"
        #expect(MetricsText.Format(accept: accept) == .openMetrics)
        #expect(MetricsText.Format(accept: "text/plain") == .prometheus)
        for other in [
            "application/openmetrics-text;q=0", "application/openmetrics-text; q=0.000, text/plain",
            "application/openmetrics-text2", "*/*", "", "application/openmetrics-text;q=0;x=1",
        ] {
            #expect(MetricsText.Format(accept: other) == .prometheus, "\(other)")
        }
        for asked in [
            "text/plain, Application/OpenMetrics-Text ; version=1.0.0",
            "application/openmetrics-text;q=0.1",
        ] {
            #expect(MetricsText.Format(accept: asked) == .openMetrics, "\(asked)")
        }
    }
}
