// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import PushModel

/// Finds secrets in what a program shows: device tokens, parts of signing keys, passwords, and
/// whatever has the form of a JSON Web Token.
///
/// Of each secret the first 16 characters are looked for, so that a shortened one is found too. A
/// device token is found in hexadecimal of any case and in base64, a signing key by the lines of
/// its file.
package struct SecretSearch: Sendable {
    package enum Kind: String, Sendable, Comparable {
        case deviceToken = "a device token"
        case signingKey = "a part of a signing key"
        case password = "a password"
        case webToken = "a JSON Web Token"

        package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
    }

    /// Where a secret was found. It does not hold the secret.
    package struct Finding: Hashable, Sendable {
        /// The number of the line, from 1.
        package var line: Int
        package var kind: Kind
    }

    /// The first 16 characters of each secret, as bytes of a number. Hexadecimal digits are lower
    /// case, and base64 has the alphabet with `+` and `/`.
    private var hexStarts: Set<UInt128> = []
    private var starts: [UInt128: Kind] = [:]

    private static let startLength = 16

    package init() {}

    /// How many secrets are looked for, a line of a key being one.
    package var count: Int { hexStarts.count + starts.values.count { $0 != .deviceToken } }

    package mutating func add(deviceToken: [UInt8]) {
        let digits = Array(Hexadecimal.encode(deviceToken).utf8)
        precondition(
            digits.count >= Self.startLength, "a device token is long enough to be searched for")
        hexStarts.insert(Self.start(of: digits))
        starts[Self.start(of: Array(Data(deviceToken).base64EncodedData()))] = .deviceToken
    }

    /// - Parameter pem: the text of the key's file.
    package mutating func add(signingKey pem: String) {
        for line in pem.split(separator: "\n") where !line.hasPrefix("-----") {
            // The last line may be too short to be told from a word.
            guard line.utf8.count >= Self.startLength else { continue }
            starts[Self.start(of: Array(line.utf8))] = .signingKey
        }
    }

    package mutating func add(password: String) {
        precondition(
            password.utf8.count >= Self.startLength, "a password is long enough to be searched for")
        precondition(
            password.utf8.allSatisfy(Self.isOfSecret),
            "a password is one run of characters that secrets have")
        starts[Self.start(of: Array(password.utf8))] = .password
    }

    /// The findings in order, each kind once a line.
    package func findings(in text: [UInt8]) -> [Finding] {
        var found: Set<Finding> = []
        var line = 1
        var position = 0
        while position < text.count {
            let end = text[position...].firstIndex { !Self.isOfSecret($0) } ?? text.count
            let run = text[position..<end]
            if run.count >= Self.startLength {
                for kind in kinds(in: run) { found.insert(Finding(line: line, kind: kind)) }
            }
            if end < text.count, text[end] == UInt8(ascii: "\n") { line += 1 }
            position = end + 1
        }
        return found.sorted { ($0.line, $0.kind) < ($1.line, $1.kind) }
    }

    // MARK: One run of characters of which secrets are made

    private func kinds(in run: ArraySlice<UInt8>) -> Set<Kind> {
        var kinds: Set<Kind> = Self.hasWebToken(run) ? [.webToken] : []
        // The last 16 characters, in both notations, and how many of them are hexadecimal.
        var (hex, base64) = (UInt128(0), UInt128(0))
        var hexCount = 0
        for (index, byte) in run.enumerated() {
            hex = hex << 8 | UInt128(Self.lowercased(byte))
            base64 = base64 << 8 | UInt128(Self.standardBase64(byte))
            hexCount = Self.isHexadecimal(byte) ? hexCount + 1 : 0
            guard index + 1 >= Self.startLength else { continue }
            if hexCount >= Self.startLength, hexStarts.contains(hex) { kinds.insert(.deviceToken) }
            if let kind = starts[base64] { kinds.insert(kind) }
        }
        return kinds
    }

    /// Whether a header and a payload are in the run: `eyJ…` (`{"` in base64), a point, and more.
    private static func hasWebToken(_ run: ArraySlice<UInt8>) -> Bool {
        let parts = run.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return zip(parts, parts.dropFirst()).contains { header, payload in
            payload.count >= webTokenPartMin
                && header.indices.contains { index in
                    let rest = header[index...]
                    return rest.count >= webTokenPartMin && rest.starts(with: Array("eyJ".utf8))
                }
        }
    }

    /// `{"a":1}` in base64 has ten characters.
    private static let webTokenPartMin = 10

    // MARK: Characters

    private static func start(of text: [UInt8]) -> UInt128 {
        text.prefix(startLength).reduce(0) { $0 << 8 | UInt128(standardBase64($1)) }
    }

    private static func isOfSecret(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "-")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "="),
            UInt8(ascii: "_"):
            true  // The range of `-` includes `.` and `/`.
        default: false
        }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch lowercased(byte) {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
        default: false
        }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    private static func standardBase64(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "-"): UInt8(ascii: "+")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        default: byte
        }
    }
}
