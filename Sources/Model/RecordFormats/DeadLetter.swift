// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What failed, for whom, and why: the value of a record of the dead-letters topic.
package struct DeadLetter: Sendable {
    /// Where the event is, so that it can be read again while Kafka keeps it.
    package struct Source: Sendable, Equatable {
        package var topic: String
        package var partition: Int32
        package var offset: Int64

        package init(topic: String, partition: Int32, offset: Int64) {
            self.topic = topic
            self.partition = partition
            self.offset = offset
        }

        /// Reads `TOPIC/PARTITION/OFFSET`, written as `text` writes it: sources are compared as texts.
        package init?(text: String) {
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 3, RecordLimits.kafkaTopicBytes.contains(parts[0].utf8.count),
                let partition = Int32(parts[1]), let offset = Int64(parts[2]), partition >= 0,
                offset >= 0
            else { return nil }
            self.init(topic: String(parts[0]), partition: partition, offset: offset)
            guard self.text == text else { return nil }
        }

        package var text: String { "\(topic)/\(partition)/\(offset)" }
    }

    /// The header of a withheld event that is released: where it stood.
    package static let releasedHeader = "lamplighter-released"

    package struct Target: Sendable {
        package var token: [UInt8]
        package var environment: PushEnvironment
        package var apnsTopic: String

        package init(token: [UInt8], environment: PushEnvironment, apnsTopic: String) {
            self.token = token
            self.environment = environment
            self.apnsTopic = apnsTopic
        }
    }

    /// The record as Kafka had it; enough to produce it again.
    package struct Original: Sendable {
        package var key: [UInt8]?
        package var value: [UInt8]?
        package var headers: [(name: String, value: [UInt8])]

        package init(
            key: [UInt8]?, value: [UInt8]?, headers: [(name: String, value: [UInt8])] = []
        ) {
            self.key = key
            self.value = value
            self.headers = headers
        }

        /// The size of key, value and headers in bytes.
        package var size: Int {
            headers.reduce((key?.count ?? 0) + (value?.count ?? 0)) {
                $0 + $1.name.utf8.count + $1.value.count
            }
        }
    }

    /// The most targets that one letter names; further ones go into another letter.
    package static let targetsMax = 500

    /// Reasons that the worker gives, as opposed to those of APNs and the codes of unreadable
    /// records.
    package enum OwnReason: String, CaseIterable, Sendable {
        case attemptsExhausted = "AttemptsExhausted"
        case deferralTooLarge = "DeferralTooLarge"
        /// The letter stands for more reasons than are told apart while Kafka accepts no letters.
        case several = "SeveralReasons"
    }

    /// An APNs reason, a code of `UnreadableCode`, or a word of the worker's own.
    package var reason: String
    /// An explanation for people; it never contains the record's content.
    package var message: String?
    /// The status of the last answer; nil when APNs was not asked.
    package var status: UInt16?
    package var attempts: Int
    /// The oldest event that the pushes answer for.
    package var source: Source
    /// The event whose payload this is, where it is not `source`: the newer one replaced the older.
    package var payloadSource: Source?
    package var firstAt: WallTime
    package var lastAt: WallTime
    package var app: String?
    /// By what the event of `source` is found again, as far as the worker still knows it.
    package var correlation = Correlation.none
    package var subject: [UInt8]
    /// The subject of the event whose payload this is, where it is not `subject`; else empty.
    package var payloadSubject: [UInt8] = []
    /// What the event whose payload this is names instead of a subject.
    package var installation: String?
    package var targets: [Target]
    /// `apns-collapse-id` of the pushes, where they had one.
    package var collapseID: String?
    /// What failed: the payload, as the value, of pushes; the whole record where it cannot be read.
    package var original: Original?
    /// Whether there was an original that was left out for want of room.
    package var isOriginalLeftOut = false
    /// How many failures of one reason, from `source` on, the letter stands for; nil for an
    /// ordinary letter. A letter with a count names no tokens.
    package var failures: Int?
    /// The offset of the last event among `failures`, in the partition of `source`.
    package var lastOffset: Int64?
    /// How many failures of the one token the letter stands for, the last of which it describes;
    /// nil for an ordinary letter.
    package var repeats: Int?

    package init(
        reason: String, source: Source, firstAt: WallTime, lastAt: WallTime, attempts: Int = 0,
        subject: [UInt8] = [], targets: [Target] = []
    ) {
        self.reason = reason
        self.source = source
        self.firstAt = firstAt
        self.lastAt = lastAt
        self.attempts = attempts
        self.subject = subject
        self.targets = targets
    }

    /// Drops the original; the letter's coordinates still say where it is.
    package mutating func leaveOutOriginal() {
        isOriginalLeftOut = original != nil || isOriginalLeftOut
        original = nil
    }
}
