// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// A value of the dead-letters topic, as `dead-letters redrive` reads it.
enum DeadLettersTarget {
    /// The most that the decoder takes of one part, as often as there are parts.
    private static let eventBytesMax = 64 << 20

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var decoder = DeadLetterDecoder()
        let letter: DeadLetter
        do throws(UnreadableRecord) {
            letter = try decode(ExactBytes(input), &decoder)
        } catch { return try promiseReason(error) }
        try promise(letter.targets.count <= DeadLetter.targetsMax, "too many targets")
        try promise(
            letter.subject.count <= RecordLimits.subjectBytesMax,
            "a subject of \(letter.subject.count) bytes")
        for target in letter.targets {
            try promise(
                (1...RecordLimits.tokenBytesMax).contains(target.token.count),
                "a token of \(target.token.count) bytes")
        }
        // Both go into the deferred push that tries it again.
        if let id = letter.collapseID { try promiseHeaderValue(id) }
        do throws(UnreadableRecord) {
            _ = try decoder.payload(of: letter, for: .device)
        } catch { try promiseReason(error) }
        let written = DeadLetterEncoder.value(letter, eventBytesMax: eventBytesMax)
        do throws(UnreadableRecord) {
            let again = try decode(ExactBytes(written), &decoder)
            guard DeadLetterEncoder.value(again, eventBytesMax: eventBytesMax) != written else {
                return
            }
        } catch { throw BrokenPromise(description: "written again: \(error.message)") }
        throw BrokenPromise(description: "written again it says otherwise")
    }

    private static func decode(
        _ value: ExactBytes, _ decoder: inout DeadLetterDecoder
    ) throws(UnreadableRecord) -> DeadLetter {
        let result = ExactBytes?.some(value).lend { value in
            Result { () throws(UnreadableRecord) in try decoder.letter(value) }
        }
        return try result.get()
    }
}
