// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// By what an event is found again in other systems: its producer's name for it, and its trace.
package struct Correlation: Sendable, Equatable {
    /// The longest name that is kept.
    package static let idBytesMax = 256

    /// The event's `id`.
    package var id: String?
    /// A valid `traceparent` of version 00.
    package var traceparent: String?

    package static let none = Correlation(id: nil, traceparent: nil)

    /// Takes what may be kept: a name of at most 256 bytes, and of a `traceparent` the parts that
    /// version 00 has. What a later version adds may be any bytes.
    package init(checking id: UnsafeRawBufferPointer?, traceparent: UnsafeRawBufferPointer?) {
        if let id, (1...Self.idBytesMax).contains(id.count) {
            self.id = String(validating: id, as: UTF8.self)
        }
        self.traceparent = traceparent.flatMap { TraceContext($0) }?.text
    }

    package init(id: String?, traceparent: String?) {
        self.id = id
        self.traceparent = traceparent
    }
}
