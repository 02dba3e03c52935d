// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// A request between its header block and the end of its stream. Kept in a pool: what it holds in
/// arrays is emptied and not freed.
struct PendingRequest {
    var stream: Int32 = 0
    /// Counts the requests of a connection, so that a place used anew is told from its last user.
    var serial: UInt64 = 0
    var isOpen = false

    /// The answer that the headers have earned already; nil while all is well.
    var refusal: SimulatedAnswer?
    /// Lowercase hexadecimal as far as it is valid; what stands in the path otherwise.
    var token: [UInt8] = []
    /// `apns-id` as sent, or the one made for the answer.
    var apnsID: [UInt8] = []
    var topic: [UInt8] = []
    /// Row of the push type in the `TopicBook`.
    var type = 0
    /// Position of the app in the `TopicBook`.
    var app = 0

    /// The body, cut at one byte more than any limit.
    var body: [UInt8] = []
    /// All headers in order, when requests are recorded.
    var headers: [RecordedRequest.Header] = []

    mutating func begin(stream: Int32, serial: UInt64) {
        assert(!isOpen && serial > self.serial, "a place is taken from a request that is open")
        self.stream = stream
        self.serial = serial
        isOpen = true
        refusal = nil
        token.removeAll(keepingCapacity: true)
        apnsID.removeAll(keepingCapacity: true)
        topic.removeAll(keepingCapacity: true)
        body.removeAll(keepingCapacity: true)
        if !headers.isEmpty { headers.removeAll() }
    }

    /// One byte over the largest body of any push type: enough to see that it is too large.
    static let bodyBytesMax = PushType.all.reduce(0) { max($0, $1.bodyBytesMax) } + 1

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        assert(isOpen, "the body of a request that has ended")
        let count = min(bytes.count, Self.bodyBytesMax - body.count)
        body.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    }
}

/// A request kept whole, with what it was answered.
package struct RecordedRequest: Sendable {
    package struct Header: Hashable, Sendable {
        package let name: String
        package let value: String
    }

    package let connection: Int
    package let environment: String
    package let headers: [Header]
    package let body: [UInt8]
    package let answer: SimulatedAnswer

    /// The first header of that name.
    package subscript(name: String) -> String? {
        headers.first { $0.name == name }?.value
    }
}
