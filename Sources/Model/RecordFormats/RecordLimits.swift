// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The bounds of the record formats. The decoders enforce them, and the field tables state them.
package enum RecordLimits {
    package static let version: Int64 = 1
    package static let subjectBytesMax = 256
    package static let kindBytesMax = 256
    package static let kindsMax = 64
    /// Apple's bound on `apns-collapse-id`.
    package static let collapseIDBytesMax = 64
    package static let keyPartBytesMax = 128
    /// Apple bounds no token; a path must fit the header list. 1,024 digits.
    package static let tokenBytesMax = 512
    package static let reasonBytesMax = 64
    /// Kafka's own bound on a topic's name.
    package static let kafkaTopicBytesMax = 249
    /// APNs stores a push for 30 days at most.
    package static let ttlSecondsMax: Int64 = 30 * 86_400
    /// The rows that one registration may have unless a decoder is told otherwise.
    package static let registrationRowsMax = 10_000
    /// More than `delivery.attemptsMax` may be set to.
    package static let attemptsMax: Int64 = 1_000_000
    /// An APNs topic is an app, which is a part of a key, and a suffix: Live Activities' is the
    /// longest with 25 bytes.
    package static let apnsTopicBytesMax = keyPartBytesMax + 32
    /// Of the texts of a dead letter; more than any text of ours has.
    package static let letterTextBytesMax = 4096
    /// More than `deadLetters.eventBytesMax` may be set to.
    package static let originalBytesMax = 1 << 20

    // MARK: Ranges

    package static var subjectBytes: ClosedRange<Int> { 1...subjectBytesMax }
    package static var kindBytes: ClosedRange<Int> { 1...kindBytesMax }
    package static var kinds: ClosedRange<Int> { 1...kindsMax }
    package static var collapseIDBytes: ClosedRange<Int> { 1...collapseIDBytesMax }
    package static var keyPartBytes: ClosedRange<Int> { 1...keyPartBytesMax }
    package static var reasonBytes: ClosedRange<Int> { 1...reasonBytesMax }
    package static var kafkaTopicBytes: ClosedRange<Int> { 1...kafkaTopicBytesMax }
    package static var apnsTopicBytes: ClosedRange<Int> { 1...apnsTopicBytesMax }
    package static var letterTextBytes: ClosedRange<Int> { 0...letterTextBytesMax }
    package static var originalBytes: ClosedRange<Int> { 0...originalBytesMax }
    package static var ttlSeconds: ClosedRange<Int64> { 1...ttlSecondsMax }
    package static var attempts: ClosedRange<Int64> { 0...attemptsMax }
    /// HTTP statuses of final answers and of informational ones.
    package static var statuses: ClosedRange<Int64> { 100...599 }
    package static var partitions: ClosedRange<Int64> { 0...Int64(Int32.max) }
    /// Offsets, and counts of records.
    package static var offsets: ClosedRange<Int64> { 0...Int64.max }
}
