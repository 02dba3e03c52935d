// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import Pipeline
internal import PushModel

extension PushDescription {
    /// What names the token to people.
    var tokenID: String { Self.tokenID(of: token) }

    static func tokenID(of token: [UInt8]) -> String {
        Hexadecimal.encode(SHA256Digest.of(token).prefix(8))
    }
}
