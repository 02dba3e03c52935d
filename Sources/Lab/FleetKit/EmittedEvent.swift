// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// An event of the traffic generator, as it is produced and as the checker hears of it.
package struct EmittedEvent: Sendable {
    package enum Sort: Hashable, Sendable {
        case plain
        /// Nobody can say what it means: it is owed a dead letter and no push.
        case unreadable
        /// Its pushes are worth nothing after that time, in milliseconds since 1970.
        case shortLived(until: Int64)
    }

    /// Nanoseconds since 1970, from before it is handed to Kafka.
    package var t: Int64
    /// By number.
    package var subject: Int
    package var sort = Sort.plain

    package init(t: Int64, subject: Int, sort: Sort = .plain) {
        self.t = t
        self.subject = subject
        self.sort = sort
    }

    /// The record's value; its key is the subject.
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

    /// A line of the events log, its line end included.
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
