// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A finished span of OpenTelemetry: one step on the way of a sampled event.
package struct Span: Sendable, Equatable {
    package enum Kind: UInt8, Sendable {
        case `internal`, client, consumer
    }

    package enum Value: Sendable, Equatable {
        case text(String)
        case integer(Int)
        case flag(Bool)
    }

    package struct Attribute: Sendable, Equatable {
        package var name: String
        package var value: Value

        package init(_ name: String, _ value: Value) {
            self.name = name
            self.value = value
        }
    }

    package var name: String
    package var kind: Kind
    package var trace: TraceID
    package var id: SpanID
    /// Nil for the first span of a trace.
    package var parent: SpanID?
    package var start: MonotonicTime
    package var end: MonotonicTime
    package var attributes: [Attribute] = []
    /// Why the step failed; nil if it did not.
    package var failure: String?

    package init(
        _ name: String, _ kind: Kind, trace: TraceID, id: SpanID, parent: SpanID?,
        start: MonotonicTime, end: MonotonicTime
    ) {
        self.name = name
        self.kind = kind
        self.trace = trace
        self.id = id
        self.parent = parent
        self.start = start
        self.end = end
    }
}
