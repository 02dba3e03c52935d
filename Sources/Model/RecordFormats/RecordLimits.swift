// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The bounds of the record formats. The decoders enforce them, and the field tables state them.
/// They are inlinable properties because another module reads a stored one by a call.
@usableFromInline package enum RecordLimits {
    @inlinable package static var version: Int64 { 1 }
    @inlinable package static var subjectBytesMax: Int { 256 }
    @inlinable package static var kindBytesMax: Int { 256 }
    @inlinable package static var kindsMax: Int { 64 }
    /// Apple's bound on `apns-collapse-id`.
    @inlinable package static var collapseIDBytesMax: Int { 64 }
    @inlinable package static var keyPartBytesMax: Int { 128 }
    /// Apple sets no bound; the path of such a token, with its 1,024 digits, must fit the header
    /// list.
    @inlinable package static var tokenBytesMax: Int { 512 }
    @inlinable package static var reasonBytesMax: Int { 64 }
    /// Kafka's own bound on a topic's name.
    @inlinable package static var kafkaTopicBytesMax: Int { 249 }
    /// APNs stores a push for 30 days at most.
    @inlinable package static var ttlSecondsMax: Int64 { 30 * 86_400 }
    /// The rows that one registration may have unless a decoder is told otherwise.
    @inlinable package static var registrationRowsMax: Int { 10_000 }
    /// Greater than any value that `delivery.attemptsMax` may have.
    @inlinable package static var attemptsMax: Int64 { 1_000_000 }
    /// The longest suffix of an APNs topic. Live Activities' has 23 bytes; a later release may know a
    /// longer one.
    @inlinable package static var topicSuffixBytesMax: Int { 32 }
    /// An APNs topic is an app, which is a part of a key, and a suffix.
    @inlinable package static var apnsTopicBytesMax: Int { keyPartBytesMax + topicSuffixBytesMax }
    /// The longest text of a dead letter; longer than any that a worker writes.
    @inlinable package static var letterTextBytesMax: Int { 4096 }
    /// Greater than any value that `deadLetters.eventBytesMax` may have.
    @inlinable package static var originalBytesMax: Int { 1 << 20 }

    /// More members than any object of a record has fields for.
    @inlinable package static var fieldsMax: Int { 24 }

    // MARK: Ranges

    @inlinable package static var subjectBytes: ClosedRange<Int> { 1...subjectBytesMax }
    @inlinable package static var kindBytes: ClosedRange<Int> { 1...kindBytesMax }
    @inlinable package static var kinds: ClosedRange<Int> { 1...kindsMax }
    @inlinable package static var traceparentBytes: ClosedRange<Int> { 55...128 }
    @inlinable package static var collapseIDBytes: ClosedRange<Int> { 1...collapseIDBytesMax }
    @inlinable package static var keyPartBytes: ClosedRange<Int> { 1...keyPartBytesMax }
    @inlinable package static var reasonBytes: ClosedRange<Int> { 1...reasonBytesMax }
    @inlinable package static var kafkaTopicBytes: ClosedRange<Int> { 1...kafkaTopicBytesMax }
    @inlinable package static var apnsTopicBytes: ClosedRange<Int> { 1...apnsTopicBytesMax }
    @inlinable package static var letterTextBytes: ClosedRange<Int> { 0...letterTextBytesMax }
    @inlinable package static var originalBytes: ClosedRange<Int> { 0...originalBytesMax }
    @inlinable package static var ttlSeconds: ClosedRange<Int64> { 1...ttlSecondsMax }
    @inlinable package static var attempts: ClosedRange<Int64> { 0...attemptsMax }
    /// HTTP statuses of final answers and of informational ones.
    @inlinable package static var statuses: ClosedRange<Int64> { 100...599 }
    @inlinable package static var partitions: ClosedRange<Int64> { 0...Int64(Int32.max) }
    /// Offsets, and counts of records.
    @inlinable package static var offsets: ClosedRange<Int64> { 0...Int64.max }
    /// Milliseconds from an event to the end of its push.
    @inlinable package static var latencies: ClosedRange<Int64> { 0...Int64.max }
    /// Further failures of which one letter tells.
    package static var repeats: ClosedRange<Int64> { 1...Int64.max }
}
