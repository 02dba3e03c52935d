// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats

/// Which registrations are dead, and which suppressions are about tokens that nobody has any more: decided
/// from all records of both topics, suppressions first, without asking anybody.
///
/// A suppression must outlive every registration of its token, or that token is sent pushes again; so it
/// is never removed for its age alone. Registrations none of whose tokens a suppression is about are not
/// kept: memory is by the number of suppressions.
package struct RegistrationCensus: ~Copyable {
    /// A registration that is removed or changed.
    package struct Entry: Sendable {
        package let key: [UInt8]
        package let partition: Int32
        package let tokens: Set<Token>
        fileprivate let registeredAt: WallTime
        /// All that it says was understood: it has no target but those.
        fileprivate var isWhole: Bool
    }

    package struct Token: Hashable, Sendable {
        package let route: RouteID
        package let bytes: [UInt8]
    }

    /// A suppression that stands.
    package struct Standing: Sendable {
        package let key: [UInt8]
        package let partition: Int32
        package let token: Token
        fileprivate let registeredAt: WallTime
        fileprivate let writtenAt: WallTime
    }

    /// Of apps that are served, and not readable all the same.
    package private(set) var unreadable = 0
    private let routing: RoutingTable
    /// Suppressions written later than this are too young to act on.
    private let deadline: WallTime
    private let isWanted: @Sendable (_ key: [UInt8]) -> Bool
    private var suppressionDecoder: TokenRecordDecoder
    private var decoder: RegistrationDecoder
    private var registration = Registration()
    private var tokenKey = TokenKey()
    private var suppressions: [Token: Standing] = [:]
    private var entries: [[UInt8]: Entry] = [:]
    /// A suppression that came later would find its registrations dropped.
    private var hasRegistrations = false

    /// - Parameters:
    ///   - deadFor: how long a suppression must have stood.
    ///   - isWanted: registrations that are kept whatever their tokens are.
    package init(
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

    package mutating func suppressionRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, partition: Int32,
        timestamp: WallTime
    ) {
        precondition(!hasRegistrations, "suppressions are read before registrations")
        let suppression: Suppression?
        do throws(UnreadableRecord) {
            suppression = try suppressionDecoder.suppression(
                key: key, value: value, into: &tokenKey)
        } catch {
            // What stood before goes on to stand.
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

    /// In the order of the log, after every suppression.
    package mutating func registrationRecord(
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
            // What stood before goes on to stand, and here it is not known what that will come to.
            entries[bytes]?.isWhole = false
            let isOthers = [UnreadableCode.unknownApp, .unservedEnvironment]
                .contains { $0.rawValue == error.code }
            if !isOthers { unreadable += 1 }
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

    /// Of the registration that was read last.
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

    /// Registrations whose every token has had a suppression for long enough, one that no registration
    /// of that token has outlived. In the order of their keys.
    package func deadRegistrations() -> [Entry] {
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

    /// The registrations that `isWanted` asked for and that stand, in the order of their keys.
    package func wantedRegistrations() -> [Entry] {
        entries.values.filter { isWanted($0.key) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }

    /// Suppressions of tokens that no registration has.
    /// - Parameters:
    ///   - removed: keys of registrations that are as good as gone.
    ///   - tokens: whose suppressions may go, however young they are; nil for all that are old enough.
    package func abandonedSuppressions(
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
