// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
internal import OpenSSL
package import PushModel
internal import Synchronization

/// A signed provider token at a fixed address, as `authorization` carries it. Immutable.
package final class ProviderToken: @unchecked Sendable {
    // SAFETY: written in `init` only.
    /// `bearer ` and the JWT; valid while this object is.
    package let bearer: UnsafeBufferPointer<UInt8>
    /// Counts the tokens of one `ProviderTokens`.
    package let generation: Int
    /// Counts its keys. A connection must not see two: APNs ties it to the first.
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

/// Why no provider token can be made. Never quotes the key.
package enum ProviderTokenError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A team or key identifier that is not 1 to 32 letters and digits (Apple's have 10).
    case identifier(String)
    /// The PEM text is not an EC P-256 private key; OpenSSL's words.
    case key(String)
    /// Signing failed; OpenSSL's words.
    case signature(String)

    package var description: String {
        switch self {
        case .identifier(let text): "\"\(text)\" is not a team or key identifier"
        case .key(let text): "the APNs key (.p8) is unusable: \(text)"
        case .signature(let text): "the provider token cannot be signed: \(text)"
        }
    }
}

/// The provider tokens of one (team, key): one token at a time, shared by every connection of the
/// process. Asked once per turn of a delivery thread, never per push.
package final class ProviderTokens: Sendable {
    private struct State {
        var key: ES256Key
        var keyID: String
        var keyGeneration = 0
        var schedule = ProviderTokenSchedule()
        var current: ProviderToken?
    }

    private let teamID: String
    private let state: Mutex<State>

    package init(teamID: String, keyID: String, pem: String) throws(ProviderTokenError) {
        try Self.check(teamID)
        try Self.check(keyID)
        self.teamID = teamID
        state = Mutex(State(key: try Self.read(pem), keyID: keyID))
    }

    /// The token to send with, minted at first use and renewed in time. Who asks meanwhile waits
    /// for the one signature, tens of microseconds.
    package func current(now: Now) throws(ProviderTokenError) -> ProviderToken {
        try state.withLock { state throws(ProviderTokenError) in
            if state.schedule.decision(for: .use, at: now.monotonic) == .keep,
                let current = state.current
            {
                return current
            }
            return try mint(&state, now)
        }
    }

    /// APNs called `token` expired. Mints another if that one is still the current one and is old
    /// enough to be replaced.
    package func refused(
        _ token: ProviderToken, now: Now
    ) throws(ProviderTokenError) -> ProviderTokenSchedule.Decision {
        try state.withLock { state throws(ProviderTokenError) in
            guard state.current?.generation == token.generation else { return .keep }
            let decision = state.schedule.decision(for: .refusal, at: now.monotonic)
            if decision == .mint { _ = try mint(&state, now) }
            return decision
        }
    }

    /// Takes a new key for the same team, live. On an error the old key stays. Connections that
    /// have seen a token of the old key are retired by their transports.
    /// - Parameter keyID: nil keeps the identifier.
    package func replaceKey(pem: String, keyID: String? = nil) throws(ProviderTokenError) {
        let key = try Self.read(pem)
        if let keyID { try Self.check(keyID) }
        state.withLock { state in
            state.key = key
            if let keyID { state.keyID = keyID }
            state.keyGeneration += 1
            state.schedule.keyReplaced()
        }
    }

    private func mint(
        _ state: inout State, _ now: Now
    ) throws(ProviderTokenError) -> ProviderToken {
        let header = #"{"alg":"ES256","kid":"\#(state.keyID)"}"#
        let claims = #"{"iss":"\#(teamID)","iat":\#(now.wall.seconds)}"#
        var jwt = Base64URL.encode(header.utf8) + [0x2E] + Base64URL.encode(claims.utf8)
        do {
            jwt += [0x2E] + Base64URL.encode(try state.key.sign(jwt))
        } catch {
            throw .signature(error.description)
        }
        let token = ProviderToken(
            jwt: jwt, generation: (state.current?.generation ?? 0) + 1,
            keyGeneration: state.keyGeneration)
        state.schedule.minted(at: now.monotonic)
        state.current = token
        return token
    }

    private static func read(_ pem: String) throws(ProviderTokenError) -> ES256Key {
        do {
            return try ES256Key(pem: pem)
        } catch {
            throw .key(error.description)
        }
    }

    /// What passes needs no escaping in JSON.
    private static func check(_ identifier: String) throws(ProviderTokenError) {
        let isSound = identifier.utf8.allSatisfy {
            switch $0 {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: false
            }
        }
        guard isSound, (1...32).contains(identifier.utf8.count) else {
            throw .identifier(identifier)
        }
    }
}

/// RFC 4648 §5 without padding, as JOSE wants it.
enum Base64URL {
    private static let digits = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func encode(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        var bits = 0
        var held = 0
        for byte in bytes {
            bits = (bits << 8 | Int(byte)) & 0xFFFF
            held += 8
            while held >= 6 {
                held -= 6
                text.append(digits[bits >> held & 63])
            }
        }
        if held > 0 { text.append(digits[bits << (6 - held) & 63]) }
        return text
    }
}
