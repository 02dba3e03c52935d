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
    /// Apple's word, where the list does not know it.
    package let unknownReason: String?

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
        unknownReason = reason == .unknown ? text : nil
    }
}
