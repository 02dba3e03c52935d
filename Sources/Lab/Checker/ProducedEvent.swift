// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The position of an event in Kafka.
package struct Coordinates: Hashable, CustomStringConvertible {
    package var topic: String
    package var partition: Int32
    package var offset: Int64

    package var description: String { "\(topic)/\(partition)/\(offset)" }
}

/// A line of the produced-events log: an event that Kafka has acknowledged.
struct ProducedEvent {
    /// When the event was produced, in nanoseconds since 1970, taken before it was handed to Kafka.
    var t: Int64
    var coordinates: Coordinates
    var app: String
    var subject: String
    /// When the event expires, in nanoseconds since 1970; nil for the default lifetime. The fixed
    /// format lacks this member; a generator of events with their own lifetimes adds it.
    var expiresAt: Int64?
    /// Whether the event is unreadable, so that it must get a dead letter and nothing else. The
    /// fixed format lacks this member too.
    var isUnreadable = false

    init(_ line: Span<UInt8>) throws(LineProblem) {
        var cursor = LineCursor()
        if cursor.skip(#"{"t":"#, in: line), let t = cursor.integer(in: line),
            cursor.skip(#","topic":""#, in: line), let topic = cursor.string(in: line),
            cursor.skip(#","partition":"#, in: line), let partition = cursor.integer(in: line),
            cursor.skip(#","offset":"#, in: line), let offset = cursor.integer(in: line),
            cursor.skip(#","app":""#, in: line), let app = cursor.string(in: line),
            cursor.skip(#","subject":""#, in: line), let subject = cursor.string(in: line),
            cursor.skip("}", in: line), cursor.isAtEnd(of: line),
            let partition = Int32(exactly: partition)
        {
            self.t = t
            coordinates = Coordinates(
                topic: String(line, topic), partition: partition, offset: offset)
            self.app = String(line, app)
            self.subject = String(line, subject)
            return
        }
        let object = try JSONMembers(line)
        t = try object.required("t")
        coordinates = try object.coordinates()
        app = try object.required("app")
        subject = try object.required("subject")
        expiresAt = object.integer("expiresAt")
        isUnreadable = object.flag("unreadable")
    }
}

extension String {
    init(_ line: Span<UInt8>, _ range: Range<Int>) {
        self = line.extracting(range).withUnsafeBufferPointer {
            String(decoding: $0, as: UTF8.self)
        }
    }
}
