// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import PushModel
import RecordFormats
import Worker

/// Finds the registrations that are dead and the suppressions of tokens that no registration has
/// any more, from all records of both topics. Suppressions are read first.
///
/// A suppression must outlive every registration of its token, or the token is sent pushes again;
/// so it is never removed for its age alone. Registrations without a suppressed token are not kept,
/// so memory depends on the number of suppressions.
struct RegistrationCensus: ~Copyable {
    /// A registration that may be removed or changed.
    struct Entry: Sendable {
        let key: [UInt8]
        let partition: Int32
        let tokens: Set<Token>
        fileprivate let registeredAt: WallTime
        /// Whether every target of the registration was understood, so that it has no other tokens.
        fileprivate var isWhole: Bool
    }

    struct Token: Hashable, Sendable {
        let route: RouteID
        let bytes: [UInt8]
    }

    /// A suppression that is in effect.
    struct Standing: Sendable {
        let key: [UInt8]
        let partition: Int32
        let token: Token
        fileprivate let registeredAt: WallTime
        fileprivate let writtenAt: WallTime
    }

    /// How many registrations of configured apps and environments could not be read.
    private(set) var unreadable = 0
    private let routing: RoutingTable
    /// Suppressions written after this time are too young to act on.
    private let deadline: WallTime
    private let isWanted: @Sendable (_ key: [UInt8]) -> Bool
    private var suppressionDecoder: TokenRecordDecoder
    private var decoder: RegistrationDecoder
    private var registration = Registration()
    private var tokenKey = TokenKey()
    private var suppressions: [Token: Standing] = [:]
    private var entries: [[UInt8]: Entry] = [:]
    /// Whether a registration was read. A suppression must not follow: its registrations may have
    /// been dropped.
    private var hasRegistrations = false

    /// - Parameters:
    ///   - deadFor: how long a suppression must have been in effect.
    ///   - isWanted: whether to keep the registration of this key whatever its tokens are.
    init(
        _ configuration: Configuration, deadFor: Duration, now: WallTime,
        isWanted: @escaping @Sendable (_ key: [UInt8]) -> Bool = { _ in false }
    ) {
        routing = WorkerPlan(configuration).routing
        deadline = now + (.zero - deadFor)
        self.isWanted = isWanted
        suppressionDecoder = TokenRecordDecoder(routing: routing)
        decoder = RegistrationDecoder(routing: routing)
    }

    // MARK: Records

    mutating func suppressionRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, partition: Int32,
        timestamp: WallTime
    ) {
        precondition(!hasRegistrations, "every suppression is read before the first registration")
        let suppression: Suppression?
        do throws(UnreadableRecord) {
            suppression = try suppressionDecoder.suppression(
                key: key, value: value, timestamp: timestamp, into: &tokenKey)
        } catch {
            // An unreadable record changes nothing, as for a worker.
            return
        }
        let token = Token(route: tokenKey.route, bytes: tokenKey.token)
        guard let suppression else {
            suppressions[token] = nil
            return
        }
        suppressions[token] = Standing(
            key: key.map { Array($0) } ?? [], partition: partition, token: token,
            registeredAt: suppression.registeredAt, writtenAt: timestamp)
    }

    /// Reads a registration record. To be called in the order of the log, after all suppressions.
    mutating func registrationRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, partition: Int32,
        timestamp: WallTime
    ) {
        hasRegistrations = true
        let bytes = key.map { Array($0) } ?? []
        let skipped = decoder.skippedTargets
        do throws(UnreadableRecord) {
            let change = try decoder.decode(
                key: key, value: value, timestamp: timestamp, into: &registration)
            if change == .removed {
                entries[bytes] = nil
                return
            }
        } catch {
            // A worker keeps the previous registration. What this record means is unknown, so its
            // key must not count as dead.
            entries[bytes]?.isWhole = false
            let isOthers = [UnreadableCode.unknownApp, .unservedEnvironment]
                .contains { $0.rawValue == error.code }
            if !isOthers && !error.isLeftOut { unreadable += 1 }
            return
        }
        let tokens = self.tokens
        let isKept = isWanted(bytes) || tokens.contains { suppressions[$0] != nil }
        entries[bytes] =
            isKept
            ? Entry(
                key: bytes, partition: partition, tokens: tokens,
                registeredAt: registration.registeredAt,
                isWhole: decoder.skippedTargets == skipped) : nil
    }

    /// The tokens of the registration that was read last.
    private var tokens: Set<Token> {
        var tokens: Set<Token> = []
        for row in registration.rows {
            let route = routing.route(
                environment: registration.environment, app: registration.app,
                tokenClass: row.tokenClass)
            guard let route else { continue }
            let start = Int(row.token.offset)
            tokens.insert(
                Token(
                    route: route,
                    bytes: Array(registration.bytes[start..<start + Int(row.token.count)])))
        }
        return tokens
    }

    // MARK: Answers

    /// The registrations all of whose tokens have been suppressed for long enough, with no later
    /// registration of any of those tokens. In the order of their keys.
    func deadRegistrations() -> [Entry] {
        var latest: [Token: WallTime] = [:]
        for entry in entries.values {
            for token in entry.tokens where suppressions[token] != nil {
                latest[token] = max(latest[token] ?? entry.registeredAt, entry.registeredAt)
            }
        }
        return entries.values.filter { entry in
            entry.isWhole && !entry.tokens.isEmpty
                && entry.tokens.allSatisfy { token in
                    guard let suppression = suppressions[token], let time = latest[token] else {
                        return false
                    }
                    return suppression.writtenAt <= deadline && suppression.registeredAt >= time
                }
        }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }

    /// The registrations in effect for which `isWanted` is true, in the order of their keys.
    func wantedRegistrations() -> [Entry] {
        entries.values.filter { isWanted($0.key) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }

    /// The suppressions of tokens that no registration has.
    /// - Parameters:
    ///   - removed: the keys of registrations that are about to be removed.
    ///   - tokens: the tokens whose suppressions may be removed, however young; nil for all
    ///     suppressions that are old enough.
    func abandonedSuppressions(
        without removed: Set<[UInt8]> = [], of tokens: Set<Token>? = nil
    ) -> [Standing] {
        var held: Set<Token> = []
        for entry in entries.values where !removed.contains(entry.key) {
            held.formUnion(entry.tokens)
        }
        return suppressions.values.filter { suppression in
            !held.contains(suppression.token)
                && (tokens.map { $0.contains(suppression.token) }
                    ?? (suppression.writtenAt <= deadline))
        }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }
}
