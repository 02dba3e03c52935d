// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats

/// Which registrations are dead, and which verdicts are about tokens that nobody has any more: decided
/// from all records of both topics, verdicts first, without asking anybody.
///
/// A verdict must outlive every registration of its token, or that token is sent pushes again; so it
/// is never removed for its age alone. Registrations none of whose tokens a verdict is about are not
/// kept: memory is by the number of verdicts.
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
        package let lane: LaneID
        package let bytes: [UInt8]
    }

    /// A verdict that stands.
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
    /// Verdicts written later than this are too young to act on.
    private let deadline: WallTime
    private let isWanted: @Sendable (_ key: [UInt8]) -> Bool
    private var verdictDecoder: TokenRecordDecoder
    private var decoder: RegistrationDecoder
    private var registration = Registration()
    private var tokenKey = TokenKey()
    private var verdicts: [Token: Standing] = [:]
    private var entries: [[UInt8]: Entry] = [:]

    /// - Parameters:
    ///   - deadFor: how long a verdict must have stood.
    ///   - isWanted: registrations that are kept whatever their tokens are.
    package init(
        _ configuration: Configuration, deadFor: Duration, now: WallTime,
        isWanted: @escaping @Sendable (_ key: [UInt8]) -> Bool = { _ in false }
    ) {
        routing = WorkerPlan(configuration).routing
        deadline = now + (.zero - deadFor)
        self.isWanted = isWanted
        verdictDecoder = TokenRecordDecoder(routing: routing)
        decoder = RegistrationDecoder(routing: routing)
    }

    // MARK: Records

    package mutating func verdictRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, partition: Int32,
        timestamp: WallTime
    ) {
        let verdict: Verdict?
        do throws(UnreadableRecord) {
            verdict = try verdictDecoder.verdict(key: key, value: value, into: &tokenKey)
        } catch {
            // What stood before goes on to stand.
            return
        }
        let token = Token(lane: tokenKey.lane, bytes: tokenKey.token)
        guard let verdict else {
            verdicts[token] = nil
            return
        }
        verdicts[token] = Standing(
            key: key.map { Array($0) } ?? [], partition: partition, token: token,
            registeredAt: verdict.registeredAt, writtenAt: timestamp)
    }

    /// In the order of the log, after every verdict.
    package mutating func registrationRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, partition: Int32,
        timestamp: WallTime
    ) {
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
        let isKept = isWanted(bytes) || tokens.contains { verdicts[$0] != nil }
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
            let lane = routing.lane(
                environment: registration.environment, app: registration.app,
                tokenClass: row.tokenClass)
            guard let lane else { continue }
            let start = Int(row.token.offset)
            tokens.insert(
                Token(
                    lane: lane,
                    bytes: Array(registration.bytes[start..<start + Int(row.token.count)])))
        }
        return tokens
    }

    // MARK: Answers

    /// Registrations whose every token has had a standing verdict for long enough, one that no
    /// registration of that token has outlived.
    package func deadRegistrations() -> [Entry] {
        var latest: [Token: WallTime] = [:]
        for entry in entries.values {
            for token in entry.tokens where verdicts[token] != nil {
                latest[token] = max(latest[token] ?? entry.registeredAt, entry.registeredAt)
            }
        }
        return entries.values.filter { entry in
            entry.isWhole && !entry.tokens.isEmpty
                && entry.tokens.allSatisfy { token in
                    guard let verdict = verdicts[token], let time = latest[token] else {
                        return false
                    }
                    return verdict.writtenAt <= deadline && verdict.registeredAt >= time
                }
        }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }

    /// Whether the registration is still what `deadRegistrations` has said of it.
    package func wantedRegistrations() -> [Entry] {
        entries.values.filter { isWanted($0.key) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }

    /// Verdicts of tokens that no registration has.
    /// - Parameters:
    ///   - removed: keys of registrations that are as good as gone.
    ///   - tokens: whose verdicts may go, however young they are; nil for all that are old enough.
    package func abandonedVerdicts(
        without removed: Set<[UInt8]> = [], of tokens: Set<Token>? = nil
    ) -> [Standing] {
        var held: Set<Token> = []
        for entry in entries.values where !removed.contains(entry.key) {
            held.formUnion(entry.tokens)
        }
        return verdicts.values.filter { verdict in
            !held.contains(verdict.token)
                && (tokens.map { $0.contains(verdict.token) } ?? (verdict.writtenAt <= deadline))
        }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }
}
