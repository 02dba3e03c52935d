// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel

/// The secrets that the replicas of a registrar share, of which a file has one or two, a line each.
/// The first one signs and all verify, so that a new one can be put first while what the old one
/// signed is still in use.
struct AttestSecrets: Sendable {
    /// What is signed; a signature of one kind is none of another.
    enum Kind: String {
        case challenge = "lamplighter challenge 2"
        case credential = "lamplighter credential 1"
    }

    static let bytesMax = 4096
    static let countMax = 2
    /// 32 characters of base64 are 192 bits.
    static let secretBytes = 32...1024

    private let secrets: [[UInt8]]

    init(_ bytes: [UInt8]) throws(FileFault) {
        let lines = try AccessFile.lines(of: bytes)
        guard (1...Self.countMax).contains(lines.count) else {
            throw FileFault("has \(lines.count) secrets; it needs one, or two during a rotation")
        }
        for (number, text) in lines where !Self.secretBytes.contains(text.utf8.count) {
            throw FileFault(
                "has a secret of \(text.utf8.count) characters in line \(number); 32 to 1024 are "
                    + "accepted (openssl rand -base64 32)")
        }
        secrets = lines.map { Array($0.text.utf8) }
    }

    /// The statement and its signature, as base64url.
    func signed(_ kind: Kind, _ statement: [UInt8]) -> String {
        Base64URL.encode(statement + Self.signature(kind, statement, secrets[0]))
    }

    /// The statement in a text that `signed` wrote; nil for any other.
    func statement(_ kind: Kind, in text: String) -> [UInt8]? {
        guard text.utf8.count <= Self.bytesMax, let bytes = Base64URL.decode(text),
            bytes.count > HMACSHA256.bytes
        else { return nil }
        let statement = Array(bytes.dropLast(HMACSHA256.bytes))
        let signature = Array(bytes.suffix(HMACSHA256.bytes))
        let isSigned = secrets.contains {
            ConstantTime.isEqual(Self.signature(kind, statement, $0), signature)
        }
        return isSigned ? statement : nil
    }

    private static func signature(
        _ kind: Kind, _ statement: [UInt8], _ secret: [UInt8]
    ) -> [UInt8] {
        HMACSHA256.of(Array(kind.rawValue.utf8) + [0] + statement, key: secret)
    }
}
