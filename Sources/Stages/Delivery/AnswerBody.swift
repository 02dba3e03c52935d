// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
package import Simdjson

/// The body of an error answer, or the debug data of a GOAWAY: `{"reason":…,"timestamp":…}`.
/// Strict about nothing: what is not APNs's JSON (a proxy's page, a cut body) gives no reason, and
/// the status alone then decides.
package struct AnswerBody {
    package let reason: APNSReason
    /// When APNs had confirmed a token dead; only with 410.
    package let timestamp: WallTime?
    /// The server's word, where the list does not know it: printable, and cut where no word of
    /// Apple's would be as long.
    package let unknownReason: String?

    /// Twice Apple's longest, and what a suppression has room for.
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
