// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// A record of the suppressions topic. The input: perhaps its timestamp (`@-1`), the key, the
/// value.
enum SuppressionsTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        let timestamp = input.timestamp()
        try TokenRecordPromises.check(
            input.rest,
            read: { decoder, key, value, about throws(UnreadableRecord) in
                var suppression = try decoder.suppression(
                    key: key, value: value, timestamp: timestamp, into: &about)
                // An instant outside of the years that can be written becomes the nearest within.
                if let instant = suppression?.registeredAt {
                    suppression?.registeredAt = WallTime(rfc3339: instant.rfc3339)!
                }
                return suppression
            },
            check: { (suppression: Suppression) in
                try promise(
                    (100...599).contains(suppression.status), "status \(suppression.status)")
                try promise(
                    (1...RecordLimits.reasonBytesMax).contains(suppression.reason.utf8.count),
                    "a reason of \(suppression.reason.utf8.count) bytes")
            },
            write: { SuppressionEncoder.value($0) })
    }
}

/// A record of the deferred topic. The input: the key, the value.
enum DeferredTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        try TokenRecordPromises.check(
            input,
            read: { decoder, key, value, about throws(UnreadableRecord) in
                try decoder.deferred(key: key, value: value, into: &about)
            },
            check: { (push: DeferredPush) in
                try promise((0...1_000_000).contains(push.attempts), "\(push.attempts) attempts")
                try promise([nil, 0, 1, 5, 10].contains(push.priority), "a strange priority")
                try promise(
                    push.subject.count <= RecordLimits.subjectBytesMax,
                    "a subject of \(push.subject.count) bytes")
                if let id = push.collapseID { try promiseHeaderValue(id) }
                if let payload = push.payload {
                    try promise(
                        payload.body.count <= payload.type.payloadBytesMax,
                        "a payload that APNs refuses")
                }
                var both = push
                both.include(push)
                try promise(both == push, "a push that includes itself changes")
            },
            write: { DeferredEncoder.value($0) })
    }
}

/// What holds of both topics whose key is a token.
private enum TokenRecordPromises {
    typealias Reading<Content> = (
        inout TokenRecordDecoder, UnsafeRawBufferPointer?, UnsafeRawBufferPointer?, inout TokenKey
    ) throws(UnreadableRecord) -> Content?

    static func check<Content: Equatable>(
        _ input: UnsafeRawBufferPointer, read: Reading<Content>, check: (Content) throws -> Void,
        write: (Content) -> [UInt8]
    ) throws {
        var input = FuzzInput(input)
        let key = input.field()
        let value = input.value
        var decoder = TokenRecordDecoder(routing: RecordWorld.large)
        var about = TokenKey()
        let content: Content?
        do throws(UnreadableRecord) {
            content = try decode(key, value, &decoder, &about, read)
        } catch { return try promiseReason(error) }
        try promise(
            (1...RecordLimits.tokenBytesMax).contains(about.token.count),
            "a token of \(about.token.count) bytes")
        if let content { try check(content) }
        // A worker that ends what this began writes to the key that it would make itself.
        let own = about.token.withUnsafeBufferPointer { token in
            RecordKey.deferred(
                route: RecordWorld.large[about.route], token: token,
                coalescingKey: about.coalescingKey)
        }
        var again = TokenKey()
        let copy: Content?
        do throws(UnreadableRecord) {
            copy = try decode(
                ExactBytes(own), content.map { ExactBytes(write($0)) }, &decoder, &again, read)
        } catch { throw BrokenPromise(description: "written again: \(error.message)") }
        try promise(again == about && copy == content, "written again it says otherwise")
    }

    private static func decode<Content>(
        _ key: ExactBytes?, _ value: ExactBytes?, _ decoder: inout TokenRecordDecoder,
        _ about: inout TokenKey, _ read: Reading<Content>
    ) throws(UnreadableRecord) -> Content? {
        let result = lend(key, value) { key, value in
            Result { () throws(UnreadableRecord) in try read(&decoder, key, value, &about) }
        }
        return try result.get()
    }
}
