// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// The provider of one connection: APNs binds a connection to the team of its first push, and
/// limits how often the token changes.
struct ConnectionCredential {
    struct Limits {
        /// The age at which a token expires; like the next two, in seconds.
        var ageMax: Int64
        var updateMin: Int64
        var clockSkewMax: Int64
        /// Identifiers of known keys that are not accepted, as if they were revoked or not yet
        /// created.
        var keysRefused: Set<String> = []
    }

    private let registry: ProviderTokenRegistry
    private let environment: PushEnvironment

    /// The value of `authorization` that was last accepted.
    private var text: [UInt8] = []
    private var token: ProviderToken?
    private var acceptedAt: Int64 = 0
    /// Whether a token has expired on the connection, after which nothing is accepted on it.
    private var isWedged = false
    /// Until when pushes are refused because the token was changed too early.
    private var blockedUntil: Int64 = .min

    init(registry: ProviderTokenRegistry, environment: PushEnvironment) {
        self.registry = registry
        self.environment = environment
    }

    /// The key that signed the current token.
    var key: ProviderTokenRegistry.Key? { token.map { registry.keys[$0.key] } }

    /// The answer that refuses a push for its token; nil if the push may pass.
    /// - Parameter now: seconds since 1970.
    mutating func refusal(
        of authorization: UnsafeRawBufferPointer?, now: Int64, limits: Limits
    ) -> SimulatedAnswer? {
        guard let authorization else { return .missingProviderToken }
        if isWedged { return .expiredProviderToken }
        if now < blockedUntil { return .tooManyProviderTokenUpdates }
        if let token, text.withUnsafeBytes({ $0.equals(authorization) }) {
            return isRefused(token, limits)
                ? .invalidProviderToken : ageRefusal(of: token, now: now, limits: limits)
        }
        guard let next = registry.verify(authorization: authorization) else {
            return .invalidProviderToken
        }
        if isRefused(next, limits) { return .invalidProviderToken }
        if let refusal = refusal(of: next, now: now, limits: limits) { return refusal }
        text = Array(authorization)
        token = next
        acceptedAt = now
        return nil
    }

    private mutating func refusal(
        of next: ProviderToken, now: Int64, limits: Limits
    ) -> SimulatedAnswer? {
        let key = registry.keys[next.key].settings
        guard key.environments.contains(environment) else { return .badEnvironmentKeyID }
        if let token {
            let present = registry.keys[token.key].settings
            guard present.teamID == key.teamID else { return .invalidProviderToken }
            guard token.key == next.key || Self.mayShare(present, key) else {
                return .unrelatedKeyID
            }
        }
        if let refusal = ageRefusal(of: next, now: now, limits: limits) { return refusal }
        if token != nil, now - acceptedAt < limits.updateMin {
            blockedUntil = acceptedAt + limits.updateMin
            return .tooManyProviderTokenUpdates
        }
        return nil
    }

    private func isRefused(_ token: ProviderToken, _ limits: Limits) -> Bool {
        !limits.keysRefused.isEmpty
            && limits.keysRefused.contains(registry.keys[token.key].settings.keyID)
    }

    private mutating func ageRefusal(
        of token: ProviderToken, now: Int64, limits: Limits
    ) -> SimulatedAnswer? {
        // No source says how APNs refuses a token from the future; this simulator answers
        // `InvalidProviderToken`.
        if token.issuedAt > now + limits.clockSkewMax { return .invalidProviderToken }
        guard now - token.issuedAt > limits.ageMax else { return nil }
        isWedged = true
        return .expiredProviderToken
    }

    /// Whether two keys may share a connection: team-scoped keys of the same environments may; a
    /// topic-specific key may only with its related one.
    private static func mayShare(_ first: SimulatorKey, _ second: SimulatorKey) -> Bool {
        if first.bundleIDs == nil && second.bundleIDs == nil {
            return first.environments == second.environments
        }
        return first.relatedKeyID == second.keyID || second.relatedKeyID == first.keyID
    }
}
