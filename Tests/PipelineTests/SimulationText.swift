// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats

/// Reads suppression records as a stranger would.
enum SimulatedSuppression {
    static func parse(key: [UInt8], value: [UInt8]?) -> (SimulatedToken, WallTime?) {
        let parts = String(decoding: key, as: UTF8.self).split(separator: "/").map(String.init)
        let tokenClass: TokenClass =
            parts[1].hasSuffix("controls")
            ? .control : parts[1].hasSuffix("widgets") ? .widget : .device
        let digits = Array(parts[2])
        let bytes = stride(from: 0, to: digits.count, by: 2).map { index in
            UInt8(String(digits[index...index + 1]), radix: 16)!
        }
        let token = SimulatedToken(
            environment: parts[0] == "production" ? .production : .development,
            tokenClass: tokenClass, bytes: bytes)
        guard let value else { return (token, nil) }
        return (token, time("registeredAt", in: value))
    }

    /// An instant by its name in a JSON object.
    static func time(_ name: String, in value: [UInt8]) -> WallTime? {
        let text = String(decoding: value, as: UTF8.self)
        let after = text.text(after: "\"\(name)\":\"")
        return WallTime(rfc3339: String(after.prefix { $0 != "\"" }))
    }
}

extension String {
    /// How often `name` occurs.
    func occurrences(of name: String) -> Int { ranges(of: name).count }

    /// What follows the first `name`.
    func text(after name: String) -> String {
        firstRange(of: name).map { String(self[$0.upperBound...]) } ?? ""
    }
}

struct SimulationFailure: Error {
    let text: String
}

func require(
    _ condition: Bool, _ text: @autoclosure () -> String
) throws(SimulationFailure) {
    guard condition else { throw SimulationFailure(text: text()) }
}

func withBytes<Result>(
    _ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> Result
) -> Result {
    bytes.map { $0.withUnsafeBytes { body($0) } } ?? body(nil)
}
