// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel

/// What an app has attested once, as the registrar signs it: the app keeps it and presents it with
/// each request, so that no replica needs to remember it.
struct AttestCredential: Hashable {
    var app: String
    var environment: PushEnvironment
    var installation: String
    /// A point of P-256 in 65 bytes.
    var key: [UInt8]
    var expiresAt: WallTime

    private static let version: UInt8 = 1
    static let keyBytes = 65

    /// SHA-256 of the key, by which Apple names it.
    var keyID: [UInt8] { SHA256Digest.of(key) }

    func text(_ secrets: AttestSecrets) -> String {
        secrets.signed(
            .credential,
            [Self.version, environment.rawValue] + expiresAt.seconds.bigEndianBytes
                + Self.counted(app) + Self.counted(installation) + key)
    }

    /// Nil for a text that nobody with a secret has signed.
    init?(_ text: String, _ secrets: AttestSecrets) {
        guard let statement = secrets.statement(.credential, in: text) else { return nil }
        var reader = ByteReader(statement)
        guard reader.byte() == Self.version,
            let environment = reader.byte().flatMap(PushEnvironment.init(rawValue:)),
            let seconds = reader.number(bytes: 8).flatMap(Int64.init(exactly:)),
            seconds < Int64.max / 1000, let app = reader.text(), let installation = reader.text(),
            let key = reader.bytes(Self.keyBytes), reader.rest.isEmpty
        else { return nil }
        self.init(
            app: app, environment: environment, installation: installation, key: key,
            expiresAt: WallTime(milliseconds: seconds * 1000))
    }

    init(
        app: String, environment: PushEnvironment, installation: String, key: [UInt8],
        expiresAt: WallTime
    ) {
        assert(key.count == Self.keyBytes, "an attested key is a point of P-256 in 65 bytes")
        self.app = app
        self.environment = environment
        self.installation = installation
        self.key = key
        self.expiresAt = expiresAt
    }

    /// Names have at most 128 bytes.
    private static func counted(_ text: String) -> [UInt8] {
        assert(
            text.utf8.count <= AppAttestAccess.nameBytesMax,
            "a name in a credential is no longer than an attestation may have it")
        return [UInt8(text.utf8.count)] + Array(text.utf8)
    }
}

/// What an app has attested its key for: 16 random bytes, signed together with app, environment,
/// installation and end, so that no replica needs to remember it.
enum AttestChallenge {
    static let life = Duration.seconds(300)
    private static let randomBytes = 16

    static func make(
        for subject: AttestationSubject, expiresAt: WallTime, _ secrets: AttestSecrets
    ) -> String {
        secrets.signed(
            .challenge, statement(subject, expiresAt) + RandomBytes.make(randomBytes))
    }

    /// Whether the registrar made this challenge for this installation, and recently.
    static func isValid(
        _ text: String, for subject: AttestationSubject, now: WallTime, _ secrets: AttestSecrets
    ) -> Bool {
        guard let statement = secrets.statement(.challenge, in: text) else { return false }
        var reader = ByteReader(statement)
        guard let seconds = reader.number(bytes: 8).flatMap(Int64.init(exactly:)),
            seconds < Int64.max / 1000
        else { return false }
        let expiresAt = WallTime(milliseconds: seconds * 1000)
        return now < expiresAt
            && statement.dropLast(randomBytes).elementsEqual(Self.statement(subject, expiresAt))
    }

    /// Names have no zero byte.
    private static func statement(
        _ subject: AttestationSubject, _ expiresAt: WallTime
    ) -> [UInt8] {
        expiresAt.seconds.bigEndianBytes + [subject.environment.rawValue]
            + Array(subject.app.utf8) + [0] + Array(subject.installation.utf8)
    }
}
