// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
package import PushModel

/// How an export ended.
package enum ExportOutcome: String, CaseIterable, Sendable {
    /// The collector has it.
    case delivered
    /// The collector has answered with an error.
    case refused
    /// There was no answer.
    case unanswered
}

/// Decides when each signal is exported and when a failure is worth a line in the log. Metrics are
/// due at a fixed interval, and spans when there are many or the first has waited for a while.
/// After a failure the signal waits for longer each time, and as long as the collector asks for.
/// Nothing is exported a second time.
package struct ExportSchedule {
    private var signals: [ExportSignal: State] = [:]
    private let interval: Duration
    private var random: SplitMix64

    private struct State {
        var next: MonotonicTime
        var failures = 0
        /// When a failure was last told; nil since the last success.
        var toldAt: MonotonicTime?
    }

    /// What is to be written to the log.
    package enum News: Sendable, Equatable {
        case fails, works
    }

    /// Spans wait for at most this long, which is what OpenTelemetry's SDKs have.
    private static let spansInterval = Duration.seconds(5)
    /// Spans are exported at once if they are so many.
    package static let spansMany = 512
    private static let retryMax = Duration.seconds(300)
    private static let toldInterval = Duration.seconds(60)

    package init(interval: Duration, seed: UInt64, now: MonotonicTime) {
        precondition(interval > .zero, "the interval between exports is above zero")
        self.interval = interval
        random = SplitMix64(seed: seed)
        for signal in ExportSignal.allCases {
            signals[signal] = State(next: now + Self.pause(signal, interval))
        }
    }

    private static func pause(_ signal: ExportSignal, _ interval: Duration) -> Duration {
        signal == .metrics ? interval : min(interval, spansInterval)
    }

    /// The signals to export now.
    /// - Parameter spans: how many spans wait.
    package func due(spans: Int, now: MonotonicTime) -> [ExportSignal] {
        ExportSignal.allCases.filter { signal in
            let state = signals[signal]!
            switch signal {
            case .metrics: return state.next <= now
            case .traces:
                let isMany = spans >= Self.spansMany && state.failures == 0
                return spans > 0 && (state.next <= now || isMany)
            }
        }
    }

    /// An export has ended.
    ///
    /// - Parameter retryAfter: how long the collector asks to be left alone; zero if it does not.
    package mutating func ended(
        _ outcome: ExportOutcome, _ signal: ExportSignal, retryAfter: Duration = .zero,
        now: MonotonicTime
    ) -> News? {
        let pause = Self.pause(signal, interval)
        guard outcome != .delivered else {
            let wasTold = signals[signal]!.toldAt != nil
            signals[signal] = State(next: now + pause)
            return wasTold ? .works : nil
        }
        var state = signals[signal]!
        let backoff = Backoff(least: pause * 2, most: max(Self.retryMax, pause))
        let delay = backoff.delay(attempt: state.failures, random: &random)
        state.next = now + max(max(pause, delay), retryAfter)
        state.failures += 1
        defer { signals[signal] = state }
        if let told = state.toldAt, now - told < Self.toldInterval { return nil }
        state.toldAt = now
        return .fails
    }
}
