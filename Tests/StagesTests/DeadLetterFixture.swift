// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

extension DeadLetter {
    func isSame(as other: DeadLetter) -> Bool {
        // What tells one from another is what is written of it.
        reason == other.reason && message == other.message && status == other.status
            && attempts == other.attempts && source == other.source && firstAt == other.firstAt
            && payloadSource == other.payloadSource
            && lastAt == other.lastAt && app == other.app && subject == other.subject
            && correlation == other.correlation
            && repeats == other.repeats && failures == other.failures
            && collapseID == other.collapseID && isOriginalLeftOut == other.isOriginalLeftOut
            && targets.map(\.token) == other.targets.map(\.token)
            && targets.map(\.environment) == other.targets.map(\.environment)
            && targets.map(\.apnsTopic) == other.targets.map(\.apnsTopic)
            && (original == nil) == (other.original == nil)
            && original?.key == other.original?.key && original?.value == other.original?.value
            && original?.headers.map(\.name) == other.original?.headers.map(\.name)
            && original?.headers.map(\.value) == other.original?.headers.map(\.value)
    }
}

/// A letter with something of everything.
func letter() -> DeadLetter {
    var letter = DeadLetter(
        reason: "PayloadTooLarge", source: .init(topic: "t", partition: 0, offset: 7),
        firstAt: WallTime(milliseconds: 1), lastAt: WallTime(milliseconds: 2), attempts: 1,
        subject: Array("door-42".utf8),
        targets: [.init(token: [0, 255], environment: .production, apnsTopic: "a")])
    letter.status = 413
    letter.message = "the body is over 4096 bytes"
    letter.app = "com.example.Home"
    letter.correlation = Correlation(
        id: "order \"7\"", traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    letter.original = .init(
        key: Array("door-42".utf8), value: [0xFF, 0, 1, 2], headers: [("ce_id", [0x31])])
    return letter
}
