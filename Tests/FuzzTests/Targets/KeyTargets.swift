// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel

@testable import APNSSimulator

/// The text of a `.p8` file, or of a public key. The input: the text, in which `PRIVATE_KEY` and
/// `PUBLIC_KEY` stand for the base64 of a key that is made at start: no key lies among the files.
enum KeysTarget {
    private static let pair = try! ES256Key.generate()

    static func run(_ input: UnsafeRawBufferPointer) throws {
        let pem = String(decoding: input, as: UTF8.self)
            .replacing("PRIVATE_KEY", with: base64(in: pair.privatePEM), maxReplacements: 1)
            .replacing("PUBLIC_KEY", with: base64(in: pair.publicPEM), maxReplacements: 1)
        do throws(ES256Error) {
            _ = try ES256PublicKey(pem: pem)
        } catch { try promiseLine(error.description) }
        let key: ES256Key
        do throws(ES256Error) {
            key = try ES256Key(pem: pem)
        } catch { return try promiseLine(error.description) }
        let message = Array("header.claims".utf8)
        let signature: [UInt8]
        let publicKey: ES256PublicKey
        do throws(ES256Error) {
            signature = try key.sign(message)
            publicKey = try ES256PublicKey(pem: try key.publicPEM())
        } catch { return try promiseLine(error.description) }
        try promise(signature.count == 64, "a signature of \(signature.count) bytes")
        try promise(publicKey.verify(message, signature: signature), "a signature of nobody")
    }

    private static func base64(in pem: String) -> String {
        pem.split(separator: "\n").dropFirst().dropLast().joined(separator: "\n")
    }
}

/// A provider token on its way into the simulator. The input: a line of the seconds since 1970,
/// then either values of `authorization`, a line each, or a header and claims as two lines of JSON,
/// which are signed here.
enum ProviderTokensTarget {
    private static let signer: (key: ES256Key, publicPEM: String) = {
        let pair = try! ES256Key.generate()
        return (try! ES256Key(pem: pair.privatePEM), pair.publicPEM)
    }()
    static let registry = try! ProviderTokenRegistry([
        SimulatorKey(teamID: "TEAMTEAM01", keyID: "KEYKEYKE01", publicPEM: signer.publicPEM),
        SimulatorKey(
            teamID: "TEAMTEAM01", keyID: "KEYKEYKE02", publicPEM: signer.publicPEM,
            bundleIDs: ["com.example.Home"]),
        SimulatorKey(
            teamID: "TEAMTEAM02", keyID: "KEYKEYKE03", publicPEM: signer.publicPEM,
            environments: [.development]),
    ])
    /// Enough for every order of two keys and an update; signing takes most of the time.
    private static let tokensMax = 6
    private static let limits = ConnectionCredential.Limits(
        ageMax: 3600, updateMin: 1200, clockSkewMax: 60)

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        let time = input.line().map { String(decoding: $0, as: UTF8.self) } ?? ""
        // No clock says less, and none for 30,000 years more.
        let now = min(max(0, Int64(time) ?? RecordWorld.now.seconds), 1_000_000_000_000)
        var credential = ConnectionCredential(registry: registry, environment: .production)
        for _ in 0..<tokensMax where !input.rest.isEmpty {
            let text = ExactBytes(authorization(&input))
            let refusal = credential.refusal(of: text.lent, now: now, limits: limits)
            try promise(refusal != nil || credential.key != nil, "accepted without a key")
            try promise(
                refusal.map { [403, 429].contains($0.status) } ?? true, "a strange refusal")
            // What is in force is not asked about twice.
            let again = credential.refusal(of: text.lent, now: now, limits: limits)
            try promise(refusal != nil || again == nil, "accepted, then refused")
        }
    }

    private static func authorization(_ input: inout FuzzInput) -> [UInt8] {
        let first = Array(input.line() ?? UnsafeRawBufferPointer(start: nil, count: 0))
        guard first.first == UInt8(ascii: "{") else { return first }
        let claims = Array(input.line() ?? UnsafeRawBufferPointer(start: nil, count: 0))
        let signed = Base64URL.encode(first) + "." + Base64URL.encode(claims)
        let signature = try! signer.key.sign(Array(signed.utf8))
        return Array("bearer \(signed).\(Base64URL.encode(signature))".utf8)
    }
}
