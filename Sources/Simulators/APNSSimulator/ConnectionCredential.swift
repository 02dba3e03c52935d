// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// What one connection has come to know of its provider: APNs binds a connection to the team of its
/// first push and watches how often the token changes.
struct ConnectionCredential {
    struct Limits {
        /// All in seconds.
        var ageMax: Int64
        var updateMin: Int64
        var clockSkewMax: Int64
        /// Identifiers of keys that are known and not accepted, as if revoked or not yet made.
        var keysRefused: Set<String> = []
    }

    private let registry: ProviderTokenRegistry
    private let environment: PushEnvironment

    /// The value of `authorization` that was last accepted, and when it first was.
    private var text: [UInt8] = []
    private var token: ProviderToken?
    private var acceptedAt: Int64 = 0
    /// An expired token wedges the connection: nothing is accepted on it any more.
    private var isWedged = false
    /// Too early an update closes the connection to pushes until then.
    private var blockedUntil: Int64 = .min

    init(registry: ProviderTokenRegistry, environment: PushEnvironment) {
        self.registry = registry
        self.environment = environment
    }

    /// The key that signed the token in force.
    var key: ProviderTokenRegistry.Key? { token.map { registry.keys[$0.key] } }

    /// nil when the push may pass.
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
        // Reported as `InvalidProviderToken`: no source says what a token from the future gets.
        if token.issuedAt > now + limits.clockSkewMax { return .invalidProviderToken }
        guard now - token.issuedAt > limits.ageMax else { return nil }
        isWedged = true
        return .expiredProviderToken
    }

    /// Team-scoped keys of one environment share a connection; a topic-specific key only with its
    /// related one.
    private static func mayShare(_ first: SimulatorKey, _ second: SimulatorKey) -> Bool {
        if first.bundleIDs == nil && second.bundleIDs == nil {
            return first.environments == second.environments
        }
        return first.relatedKeyID == second.keyID || second.relatedKeyID == first.keyID
    }
}
