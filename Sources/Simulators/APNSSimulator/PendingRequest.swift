// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// A request between its header block and the end of its stream. Requests are reused: their arrays
/// are emptied but not freed.
struct PendingRequest {
    var stream: Int32 = 0
    /// The number of the request on its connection, which tells it from earlier users of its place.
    var serial: UInt64 = 0
    var isOpen = false

    /// The API that the path names.
    var service = Service.devices

    enum Service {
        /// Pushes to device tokens.
        case devices
        /// Broadcasts to a channel.
        case broadcasts
        /// What is done with the channels of an app.
        case channels(ChannelAction)
    }

    enum ChannelAction { case create, read, list, delete }

    /// Whether something is to be pushed, to a device or to a channel.
    var isPush: Bool { if case .channels = service { false } else { true } }

    /// The answer that the headers already demand; nil if they are valid.
    var refusal: SimulatedAnswer?
    /// The device token: lower-case hexadecimal if valid, otherwise as it is in the path. Of a
    /// channel its ID.
    var token: [UInt8] = []
    /// The `apns-id`, or of channels the `apns-request-id`, that was sent, or the one made for the
    /// answer.
    var apnsID: [UInt8] = []
    var topic: [UInt8] = []
    /// The row of the push type in the `TopicBook`.
    var type = 0
    /// The position of the app in the `TopicBook`.
    var app = 0
    /// Whether a broadcast has an expiry other than 0, so that it is to be stored.
    var asksForStorage = false

    /// The body, cut at one byte more than the largest limit.
    var body: [UInt8] = []
    /// All headers in order, if requests are recorded.
    var headers: [RecordedRequest.Header] = []

    mutating func begin(stream: Int32, serial: UInt64) {
        assert(
            !isOpen && serial > self.serial,
            "a place is taken only when closed, by a request with a later serial")
        self.stream = stream
        self.serial = serial
        isOpen = true
        service = .devices
        asksForStorage = false
        refusal = nil
        token.removeAll(keepingCapacity: true)
        apnsID.removeAll(keepingCapacity: true)
        topic.removeAll(keepingCapacity: true)
        body.removeAll(keepingCapacity: true)
        if !headers.isEmpty { headers.removeAll() }
    }

    /// One byte more than 5120, the largest body of any push type, to detect one that is too large.
    static let bodyBytesMax = PushType.builtIn.reduce(0) { max($0, $1.bodyBytesMax) } + 1

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        assert(isOpen, "a body is that of an open request")
        let count = min(bytes.count, Self.bodyBytesMax - body.count)
        body.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    }
}

/// A complete request and its answer, kept for tests.
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
