// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import OTLPExporter
import PushModel
import Testing

@Suite struct `The queue of spans` {
    private func spans(_ count: Int) -> [Span] {
        (0..<count).map { number in
            Span(
                "s\(number)", .internal, trace: TraceID(high: 1, low: 1),
                id: SpanID(rawValue: UInt64(number + 1)), parent: nil,
                start: MonotonicTime(nanoseconds: 0), end: MonotonicTime(nanoseconds: 0))
        }
    }

    @Test func `the queue of spans gives back what it was given, once`() {
        let queue = SpanQueue()
        queue.offer { spans(3) }
        queue.offer { spans(2) }
        #expect(queue.count == 5)
        #expect(queue.take().map(\.name) == ["s0", "s1", "s2", "s0", "s1"])
        #expect(queue.take().isEmpty)
    }

    @Test func `the queue of spans never grows beyond its bound, and counts what it drops`() {
        let queue = SpanQueue(spansMax: 10)
        for _ in 0..<100 { queue.offer { spans(3) } }
        #expect(queue.count == 10)
        #expect(queue.dropped == 290)
        _ = queue.take()
        queue.offer { spans(11) }
        #expect(queue.count == 10 && queue.dropped == 291)
    }
}
