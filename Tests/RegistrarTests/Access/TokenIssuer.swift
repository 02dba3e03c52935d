// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import OpenSSL
import PushModel

@testable import RegistrarAccess

/// An issuer of JSON Web Tokens with a key of its own.
struct TokenIssuer: Sendable {
    enum Key: Sendable {
        case es256(ES256Key)
        /// The path of a PEM file, with which the `openssl` program signs.
        case rs256(AccessKeyFile)
    }

    let keyID: String
    let key: Key
    /// The members of the key set for it, without `kid`.
    private let members: String

    static let issuer = "https://login.example.com/"
    static let audience = "lamplighter"
    /// Claims of a token that is accepted.
    static let claims: [String: String] = [
        "iss": "\"\(issuer)\"", "aud": "\"\(audience)\"", "exp": "\(seconds(600))",
        "iat": "\(seconds(0))", "sub": "\"user-1\"",
        "installation": "\"\(AccessFixture.installation)\"",
    ]

    /// Seconds since 1970, from the tests' now.
    static func seconds(_ offset: Int64) -> Int64 { AccessFixture.now.seconds + offset }

    static func es256(_ keyID: String = "es-1") throws -> TokenIssuer {
        let key = try ES256Key(pem: ES256Key.generate().privatePEM)
        let point = try ES256PublicKey(pem: key.publicPEM()).point!
        let (x, y) = (Base64URL.encode(Array(point[1...32])), Base64URL.encode(Array(point[33...])))
        return TokenIssuer(
            keyID: keyID, key: .es256(key),
            members: #""kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)""#)
    }

    static func rs256(_ keyID: String = "rs-1", bits: Int = 2048) throws -> TokenIssuer {
        let file = try AccessKeyFile(bits: bits)
        let modulus = Base64URL.encode(try file.modulus())
        return TokenIssuer(
            keyID: keyID, key: .rs256(file), members: #""kty":"RSA","n":"\#(modulus)","e":"AQAB""#)
    }

    /// The key as a member of a key set, with more members.
    func jwk(_ more: String = "") -> String {
        #"{"kid":"\#(keyID)",\#(members)\#(more.isEmpty ? "" : "," + more)}"#
    }

    static func set(_ keys: String...) -> [UInt8] {
        Array(#"{"keys":[\#(keys.joined(separator: ","))]}"#.utf8)
    }

    /// A token with changed claims, each as JSON; an empty text leaves one out.
    func token(
        _ changes: [String: String] = [:], header: String? = nil
    ) throws -> String {
        let claims = Self.claims.merging(changes) { $1 }.filter { !$0.value.isEmpty }
        let body = claims.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
        return try token(header: header ?? self.header, payload: "{\(body)}")
    }

    var header: String {
        switch key {
        case .es256: #"{"alg":"ES256","kid":"\#(keyID)","typ":"JWT"}"#
        case .rs256: #"{"alg":"RS256","kid":"\#(keyID)"}"#
        }
    }

    func token(header: String, payload: String) throws -> String {
        let signed =
            Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(payload.utf8))
        return signed + "." + Base64URL.encode(try sign(Array(signed.utf8)))
    }

    func sign(_ message: [UInt8]) throws -> [UInt8] {
        switch key {
        case .es256(let key): try key.sign(message)
        case .rs256(let file): try file.sign(message)
        }
    }
}

/// An RSA key of the `openssl` program's.
final class AccessKeyFile: Sendable {
    private let folder: AccessFolder

    init(bits: Int) throws {
        folder = try AccessFolder()
        _ = try Self.openssl([
            "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:\(bits)",
            "-out", folder.file("key.pem"),
        ])
    }

    func modulus() throws -> [UInt8] {
        let output = try Self.openssl(["rsa", "-in", folder.file("key.pem"), "-noout", "-modulus"])
        let digits = String(decoding: output, as: UTF8.self).dropFirst("Modulus=".count)
        return Hexadecimal.decode(digits.trimmingCharacters(in: .newlines))!
    }

    func sign(_ message: [UInt8]) throws -> [UInt8] {
        try folder.write(String(decoding: message, as: UTF8.self), "message")
        return try Self.openssl([
            "dgst", "-sha256", "-sign", folder.file("key.pem"), folder.file("message"),
        ])
    }

    private static func openssl(_ arguments: [String]) throws -> [UInt8] {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw FileFault("openssl failed") }
        return [UInt8](output)
    }
}
