// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
package import Simdjson

/// The body of an error answer, or the debug data of a GOAWAY: `{"reason":…,"timestamp":…}`.
/// Anything else (a proxy's page, a body that was cut) gives no reason, and the status alone
/// decides.
package struct AnswerBody {
    package let reason: APNSReason
    /// The time at which APNs confirmed that the token was dead; only with 410.
    package let timestamp: WallTime?
    /// The server's reason where `APNSReason` does not list it: printable, and cut to `wordMax`
    /// characters, more than any reason of Apple's has.
    package let unknownReason: String?

    /// More than twice as long as Apple's longest reason, and as much as a suppression has room for.
    private static let wordMax = 64

    package init(_ bytes: UnsafeRawBufferPointer, parser: inout JSONParser) {
        guard bytes.count > 0, let object = try? parser.parse(bytes).object else {
            reason = .none
            timestamp = nil
            unknownReason = nil
            return
        }
        let text = object["reason"]?.string.map { String(decoding: $0, as: UTF8.self) } ?? ""
        reason = APNSReason(text)
        timestamp = object["timestamp"]?.integer.map { WallTime(milliseconds: $0) }
        let word = String(text.unicodeScalars.prefix(Self.wordMax)).printable
        unknownReason = reason == .unknown ? word : nil
    }
}
