// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Synchronization

/// Spans on their way from the planner to the exporter. The planner never waits for it, and it never
/// grows beyond its bound: what finds no room is dropped, and is counted.
package final class SpanQueue: Sendable {
    private struct State {
        var spans: [Span] = []
        var dropped = 0
    }

    private let state = Mutex(State())
    private let spansMax: Int

    package init(spansMax: Int = 2048) { self.spansMax = spansMax }

    /// Adds what `take` returns, which is not called if another thread is at the queue just now.
    package func offer(_ take: () -> [Span]) {
        state.withLockIfAvailable { state in
            let spans = take()
            let room = spansMax - state.spans.count
            state.spans.append(contentsOf: spans.prefix(room))
            state.dropped += max(0, spans.count - room)
        }
    }

    package var count: Int { state.withLock { $0.spans.count } }
    /// How many spans have found no room since the start.
    package var dropped: Int { state.withLock { $0.dropped } }

    /// Removes all spans and returns them.
    package func take() -> [Span] {
        state.withLock { state in
            let spans = state.spans
            state.spans = []
            return spans
        }
    }
}
