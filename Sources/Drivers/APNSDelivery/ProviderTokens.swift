// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
internal import OpenSSL
package import PushModel
internal import Synchronization

/// A signed provider token at a fixed address, in the form that the `authorization` header carries.
/// Immutable.
package final class ProviderToken: @unchecked Sendable {
    // SAFETY: written in `init` only.
    /// `bearer ` and the JWT; valid as long as this object lives.
    package let bearer: UnsafeBufferPointer<UInt8>
    /// The number of this token among those of its key.
    package let generation: Int
    /// The number of the key that signed this token. A connection must not carry tokens of two
    /// keys: APNs ties it to the first.
    package let keyGeneration: Int

    init(jwt: [UInt8], generation: Int, keyGeneration: Int) {
        let text = Array("bearer ".utf8) + jwt
        let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.count)
        _ = bytes.initialize(from: text)
        bearer = UnsafeBufferPointer(bytes)
        self.generation = generation
        self.keyGeneration = keyGeneration
    }

    deinit { bearer.deallocate() }
}

/// Why no provider token can be made. The description never quotes the key.
package enum ProviderTokenError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The team or key identifier is not 1 to 32 letters and digits (Apple's have 10).
    case identifier(String)
    /// The PEM text is not an EC P-256 private key; OpenSSL's words.
    case key(String)
    /// Signing failed; OpenSSL's words.
    case signature(String)
    /// What another service has made is no provider token; without its text.
    case ready(String)
    /// What another service has made is so old that APNs would refuse it.
    case readyTooOld(Duration)

    package var description: String {
        switch self {
        case .identifier(let text): "\"\(text)\" is not a team or key identifier"
        case .key(let text): "the APNs key (.p8) is unusable: \(text)"
        case .signature(let text): "the provider token cannot be signed: \(text)"
        case .ready(let text): "the provider token of another service is unusable: \(text)"
        case .readyTooOld(let age):
            "the provider token of another service is \(age.components.seconds / 60) minutes old, and "
                + "APNs refuses it after 60"
        }
    }

    package var remedy: String {
        switch self {
        case .identifier, .key, .signature: "check the credential's key file, key ID and team ID"
        case .ready, .readyTooOld:
            "have the service renew the credential's providerTokenFile, every 45 minutes or so"
        }
    }
}

/// One signing key of a team and its current provider token, which all connections that use the key
/// share. Where another service has the key, it stands for one token that was signed with it.
package final class SigningKey: Sendable {
    private struct State {
        var schedule = ProviderTokenSchedule()
        var current: ProviderToken?
    }

    private enum Source: Sendable {
        case key(ES256Key)
        case ready(ReadyProviderToken)
    }

    package let teamID: String
    package let keyID: String
    /// Identifies this key within the process.
    package let number: Int
    private let source: Source
    private let state: Mutex<State>

    private static let made = Atomic<Int>(0)

    package init(teamID: String, keyID: String, pem: String) throws(ProviderTokenError) {
        try Self.check(teamID)
        try Self.check(keyID)
        self.teamID = teamID
        self.keyID = keyID
        do {
            source = .key(try ES256Key(pem: pem))
        } catch {
            throw .key(error.description)
        }
        number = Self.made.add(1, ordering: .relaxed).newValue
        state = Mutex(State())
    }

    /// A token of the key of another service. Tokens of one key that replace each other must be ever
    /// younger: their generation is their `iat`.
    package init(_ ready: ReadyProviderToken) {
        teamID = ready.teamID
        keyID = ready.keyID
        number = ready.keyNumber
        source = .ready(ready)
        state = Mutex(
            State(
                current: ProviderToken(
                    jwt: ready.jwt, generation: Int(ready.issuedAt.seconds),
                    keyGeneration: ready.keyNumber)))
    }

    /// The token that another service has made; nil where this process has the key.
    package var ready: ReadyProviderToken? {
        if case .ready(let token) = source { token } else { nil }
    }

    fileprivate func age(at now: Now) -> Duration? {
        ready?.age(at: now) ?? state.withLock { $0.schedule.age(at: now) }
    }

    fileprivate func current(now: Now) throws(ProviderTokenError) -> ProviderToken {
        try state.withLock { state throws(ProviderTokenError) in
            if let age = ready?.age(at: now), let current = state.current {
                guard ReadyTokenAge(age) != .over else { throw .readyTooOld(age) }
                return current
            }
            if state.schedule.decision(for: .use, at: now) == .keep, let current = state.current {
                return current
            }
            return try mint(&state, now)
        }
    }

    fileprivate func refused(
        _ token: ProviderToken, now: Now
    ) throws(ProviderTokenError) -> ProviderTokenSchedule.Decision {
        try state.withLock { state throws(ProviderTokenError) in
            guard state.current?.generation == token.generation else { return .keep }
            if let age = ready?.age(at: now) { return .tooEarly(age: max(.zero, age)) }
            let decision = state.schedule.decision(for: .refusal, at: now)
            if decision == .mint { _ = try mint(&state, now) }
            return decision
        }
    }

    private func mint(
        _ state: inout State, _ now: Now
    ) throws(ProviderTokenError) -> ProviderToken {
        let header = #"{"alg":"ES256","kid":"\#(keyID)"}"#
        let claims = #"{"iss":"\#(teamID)","iat":\#(now.wall.seconds)}"#
        var jwt = [header, claims].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
        guard case .key(let key) = source else {
            preconditionFailure("a token is made only when its key is there")
        }
        do {
            jwt += "." + Base64URL.encode(try key.sign(Array(jwt.utf8)))
        } catch {
            throw .signature(error.description)
        }
        let token = ProviderToken(
            jwt: Array(jwt.utf8), generation: (state.current?.generation ?? 0) + 1,
            keyGeneration: number)
        state.schedule.minted(at: now)
        state.current = token
        return token
    }

    /// Whether the identifier is letters and digits, which need no escaping in JSON.
    static func isIdentifier(_ text: String) -> Bool {
        let isSound = text.utf8.allSatisfy {
            switch $0 {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: false
            }
        }
        return isSound && (1...32).contains(text.utf8.count)
    }

    private static func check(_ identifier: String) throws(ProviderTokenError) {
        guard isIdentifier(identifier) else { throw .identifier(identifier) }
    }
}

/// The provider tokens for the connections to one environment: those of the key in use. Delivery
/// threads ask once per turn, never per push.
package final class ProviderTokens: Sendable {
    private let key: Mutex<SigningKey>
    /// The number of the key that APNs has refused since the last `takeRefusal`; 0 for none.
    private let refusedKey = Atomic<Int>(0)
    private let keyGone = Atomic<Bool>(false)

    package init(_ key: SigningKey) { self.key = Mutex(key) }

    package convenience init(
        teamID: String, keyID: String, pem: String
    ) throws(ProviderTokenError) {
        self.init(try SigningKey(teamID: teamID, keyID: keyID, pem: pem))
    }

    package var keyInUse: SigningKey { key.withLock { $0 } }

    /// Whether the key in use is in none of its places any more, so that a process that starts would not
    /// have it.
    package var isKeyGone: Bool { keyGone.load(ordering: .relaxed) }
    package func noteGone(_ isGone: Bool) { keyGone.store(isGone, ordering: .relaxed) }

    /// The token to send with, minted at first use and renewed in time. Other threads that ask
    /// meanwhile wait for the one signature, which takes tens of microseconds.
    package func current(now: Now) throws(ProviderTokenError) -> ProviderToken {
        try keyInUse.current(now: now)
    }

    /// The age of the token of the key in use: since its `iat` where another service has made it, else
    /// since it was signed, and nil before that.
    package func age(at now: Now) -> Duration? { keyInUse.age(at: now) }

    /// Notes that APNs called `token` expired. Mints another if `token` is still the current one
    /// and old enough to be replaced. Returns `keep` if a newer one exists already.
    package func refused(
        _ token: ProviderToken, now: Now
    ) throws(ProviderTokenError) -> ProviderTokenSchedule.Decision {
        let key = keyInUse
        guard key.number == token.keyGeneration else { return .keep }
        return try key.refused(token, now: now)
    }

    /// Signs with another key from now on. Transports retire the connections that have seen a token
    /// of the previous key.
    package func use(_ key: SigningKey) { self.key.withLock { $0 = key } }

    /// Notes that APNs refuses the tokens of this key.
    package func keyRefused(_ number: Int) {
        precondition(number > 0, "a key's number is above zero, which stands for no key")
        refusedKey.store(number, ordering: .relaxed)
    }

    /// Whether APNs has refused the key in use since this was last asked.
    package func takeRefusal() -> Bool {
        refusedKey.exchange(0, ordering: .relaxed) == keyInUse.number
    }
}
