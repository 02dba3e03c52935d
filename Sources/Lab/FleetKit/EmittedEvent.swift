// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// An event of the traffic generator, with its record and its line in the events log.
package struct EmittedEvent: Sendable {
    package enum Sort: Hashable, Sendable {
        case plain
        /// An unreadable event, which gets a dead letter and no push.
        case unreadable
        /// An event whose pushes expire at this time, in milliseconds since 1970.
        case shortLived(until: Int64)
    }

    /// When the event was produced, in nanoseconds since 1970, taken before it is handed to Kafka.
    package var t: Int64
    /// The number of the subject.
    package var subject: Int
    package var sort = Sort.plain

    package init(t: Int64, subject: Int, sort: Sort = .plain) {
        self.t = t
        self.subject = subject
        self.sort = sort
    }

    /// The value of the record; its key is the subject.
    package func value(subject: String) -> [UInt8]? {
        switch sort {
        case .plain: nil
        case .unreadable: Array(#"{"v":1,"subject":"#.utf8)
        case .shortLived(let until):
            Array(
                (#"{"v":1,"subject":"\#(subject)","#
                    + #""expiresAt":"\#(WallTime(milliseconds: until).rfc3339)"}"#).utf8)
        }
    }

    /// The event's line in the events log, with its line end.
    package func line(topic: String, partition: Int32, offset: Int64, subject: String) -> String {
        let more =
            switch sort {
            case .plain: ""
            case .unreadable: #","unreadable":true"#
            case .shortLived(let until): #","expiresAt":\#(until * 1_000_000)"#
            }
        return EventLine.text(
            t: t, topic: topic, partition: partition, offset: offset, app: Neighbourhood.app,
            subject: subject, more: more)
    }
}
