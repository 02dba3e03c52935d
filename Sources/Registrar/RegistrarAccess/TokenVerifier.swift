// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel
internal import Synchronization

/// Verifies JSON Web Tokens against the keys that it was last given. Any thread may ask; nothing
/// here waits for a network or a file.
final class TokenVerifier: Sendable {
    private struct State {
        var keys: JSONWebKeySet?
        var keysReadAt = WallTime(milliseconds: 0)
        /// Counts the sets of keys, so that a token that an old set verified is not remembered
        /// beside a new one.
        var keysVersion = 0
        var verified = VerifiedTokens()
    }

    private let settings: AccessSettings.JWT
    private let state = Mutex(State())
    private let unknownKeySeen = Atomic(false)

    init(_ settings: AccessSettings.JWT) { self.settings = settings }

    /// New keys; every token is verified again, since its key may have been withdrawn.
    func keysChanged(to keys: JSONWebKeySet, at now: WallTime) {
        assert(!keys.keys.isEmpty, "a key set that is in force has at least one key")
        state.withLock { state in
            state.keys = keys
            state.keysReadAt = now
            state.keysVersion += 1
            state.verified = VerifiedTokens()
        }
    }

    /// The keys have been looked at, and are the same.
    func keysConfirmed(at now: WallTime) { state.withLock { $0.keysReadAt = now } }

    /// Whether a token with a key that is not in the set has come since the last call.
    func takeUnknownKey() -> Bool { unknownKeySeen.exchange(false, ordering: .relaxed) }

    func caller(with token: String, now: WallTime) -> Result<Caller, AccessRefusal> {
        // Before anything is computed of it.
        guard token.utf8.count <= JSONWebToken.bytesMax else {
            return .failure(TokenFault.tooLarge.refusal)
        }
        let digest = SHA256Digest.of(Array(token.utf8))
        let (keys, version, known) = state.withLock { state in
            (
                now - state.keysReadAt <= settings.keysAgeMax ? state.keys : nil,
                state.keysVersion, state.verified[digest]
            )
        }
        guard let keys else { return .failure(Self.keysUnavailable) }
        do throws(TokenFault) {
            let claims = if let known { known } else { try verify(token, keys) }
            try claims.check(now)
            if known == nil {
                state.withLock { state in
                    guard state.keysVersion == version else { return }
                    state.verified.insert(claims, digest, now: now)
                }
            }
            return .success(claims.caller)
        } catch {
            return .failure(error.refusal)
        }
    }

    private func verify(_ text: String, _ keys: JSONWebKeySet) throws(TokenFault) -> TokenClaims {
        let token = try JSONWebToken(text)
        let candidates = keys.candidates(id: token.keyID, token.algorithm)
        guard !candidates.isEmpty else {
            unknownKeySeen.store(true, ordering: .relaxed)
            throw .unknownKey
        }
        guard candidates.contains(where: { $0.verify(token.signed, signature: token.signature) })
        else { throw .signature }
        return try token.claims(settings)
    }

    private static let keysUnavailable = AccessRefusal(
        .tokenKeysUnavailable,
        "The keys of the tokens' issuer have not been fetched, or too long ago.",
        remedy: "Try again later; the registrar's operator finds the reason in its log.")
}

/// The claims of tokens that have been verified, by the SHA-256 of the token: a signature takes a
/// hundred times longer to verify than to look up.
struct VerifiedTokens: Sendable {
    static let countMax = 4096

    private var claims: [[UInt8]: TokenClaims] = [:]

    var count: Int { claims.count }

    subscript(digest: [UInt8]) -> TokenClaims? { claims[digest] }

    /// Forgets what has expired, if the table is full, and everything if nothing has.
    mutating func insert(_ new: TokenClaims, _ digest: [UInt8], now: WallTime) {
        if claims.count >= Self.countMax {
            claims = claims.filter { $0.value.expiresAt > now.seconds }
            if claims.count >= Self.countMax { claims.removeAll(keepingCapacity: true) }
        }
        claims[digest] = new
        assert(claims.count <= Self.countMax, "the claims of at most countMax tokens are kept")
    }
}
