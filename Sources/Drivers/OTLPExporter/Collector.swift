// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
package import PushModel
package import Telemetry

/// Posts metrics and spans to a collector, by libcurl. An export blocks, for `exportTimeMax` and a
/// second at most, so it is for a thread of its own. Nothing is kept for another try.
package struct Collector: Sendable {
    package let settings: CollectorSettings
    /// How long all requests of an export may take together.
    package let exportTimeMax: Duration

    private static let connectTimeMax = Duration.seconds(3)
    /// In less nothing is answered, and libcurl takes 0 ms for no limit.
    private static let requestTimeMin = Duration.milliseconds(10)

    /// How an export went, with what the log says of a failure.
    package struct Result: Sendable, Equatable {
        package var outcome: ExportOutcome
        /// Nothing of what the collector has answered but its status.
        package var cause: String?
        /// How long the collector asks to be left alone.
        package var retryAfter = Duration.zero

        package init(_ outcome: ExportOutcome, cause: String? = nil) {
            self.outcome = outcome
            self.cause = cause
        }
    }

    package init(_ settings: CollectorSettings, exportTimeMax: Duration = .seconds(10)) {
        self.settings = settings
        self.exportTimeMax = exportTimeMax
    }

    /// - Parameters:
    ///   - start: when the process was started, since when counters count.
    package func export(
        _ families: [MetricFamily], from start: WallTime, to end: WallTime
    ) -> Result {
        let requests = OTLPMetrics.requests(
            families, of: settings.resource, from: start, to: end)
        let deadline = ContinuousClock.now + exportTimeMax
        for request in requests {
            let result = post(request, .metrics, before: deadline)
            guard result.outcome == .delivered else { return result }
        }
        return Result(.delivered)
    }

    /// - Parameters:
    ///   - wallStart: what the wall clock shows when the monotonic clock is at zero, in nanoseconds
    ///     since 1970.
    ///   - counted: is called with each number of spans that was exported or lost.
    package func export(
        _ spans: [Span], wallStart: Int64, counted: (Int, ExportOutcome) -> Void
    ) -> Result {
        var result = Result(.delivered)
        var rest = spans[...]
        let deadline = ContinuousClock.now + exportTimeMax
        while !rest.isEmpty {
            let batch = rest.prefix(OTLPSpans.spansMax)
            rest = rest.dropFirst(batch.count)
            result = post(
                OTLPSpans.request(batch, of: settings.resource, wallStart: wallStart), .traces,
                before: deadline)
            counted(batch.count, result.outcome)
            guard result.outcome == .delivered else { break }
        }
        if !rest.isEmpty { counted(rest.count, result.outcome) }
        return result
    }

    private func post(
        _ body: [UInt8], _ signal: ExportSignal, before deadline: ContinuousClock.Instant
    ) -> Result {
        let timeLeft = ContinuousClock.now.duration(to: deadline)
        guard timeLeft >= Self.requestTimeMin else {
            return Result(.unanswered, cause: "the export has taken \(exportTimeMax)")
        }
        var exchange = HTTPExchange(url: settings.url(of: signal))
        exchange.headers = [("content-type", "application/x-protobuf")]
        if let file = settings.headersFile {
            // Read anew, so that a rotated secret is used without a restart.
            do throws(CollectorHeaders.Problem) {
                let headers = try CollectorHeaders(file: file)
                exchange.headers += headers.lines.map { ($0.name, $0.value.text) }
            } catch {
                return Result(.unanswered, cause: "otlp.headersFile \(error)")
            }
        }
        // Otherwise libcurl would wait for leave to send a large body.
        exchange.headers.append(("expect", ""))
        exchange.body = body
        exchange.caFile = settings.caFile
        exchange.connectTimeout = min(Self.connectTimeMax, timeLeft)
        exchange.timeout = timeLeft
        do throws(ExchangeFailure) {
            let answer = try exchange.perform()
            guard (200..<300).contains(answer.status) else {
                var result = Result(.refused, cause: "the collector answers \(answer.status)")
                result.retryAfter = answer.retryAfter
                return result
            }
            return Result(.delivered)
        } catch {
            return Result(.unanswered, cause: error.text)
        }
    }
}
