// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// Who shows what.
extension PartsFixture {
    /// Feeds a record of the registrations topic, and lets nothing else know what it changes.
    func feedRegistration(key: [UInt8], value: [UInt8]?) -> UnreadableRecord? {
        key.withUnsafeBytes { key in
            guard let value else {
                return feed.registration(key: key, value: nil, timestamp: now.wall, &state)
            }
            return value.withUnsafeBytes {
                feed.registration(key: key, value: $0, timestamp: now.wall, &state)
            }
        }
    }

    func draft(
        _ installation: String, _ targets: [RegistrationDraft.Target] = []
    ) -> RegistrationDraft {
        var draft = RegistrationDraft(
            environment: .production, app: Self.app, installation: installation, handler: "H")
        draft.registeredAt = now.wall
        draft.targets = targets
        return draft
    }

    /// Feeds a registration; a tombstone if it has no targets.
    func feedRegistration(_ installation: String, _ targets: [RegistrationDraft.Target] = []) {
        let draft = draft(installation, targets)
        let problem = feedRegistration(
            key: RegistrationEncoder.key(draft),
            value: targets.isEmpty ? nil : RegistrationEncoder.value(draft))
        precondition(problem == nil, "\(problem!)")
    }

    /// Feeds a registration, or a tombstone, and lets the late registrations act on it.
    func register(_ installation: String, _ targets: [RegistrationDraft.Target] = []) {
        feedRegistration(installation, targets)
        late.registrationApplied(feed.changes, &fanOut, &state, now: now)
        checkInvariants()
    }

    /// Registers controls of tokens 1, 2, …, each by an installation of its own.
    func registerControls(_ count: Int, shows subject: String, from first: UInt8 = 1) {
        for number in first..<first + UInt8(count) {
            register("I\(number)", [.control([number], shows: [subject])])
        }
    }

    /// Feeds the suppression of a control's token, or its tombstone.
    @discardableResult
    func feedSuppression(of token: [UInt8], registeredAt: WallTime?) -> UnreadableRecord? {
        let value = registeredAt.map { time in
            SuppressionEncoder.value(
                Suppression(
                    status: 410, reason: "Unregistered", apnsTimestamp: nil, registeredAt: time))
        }
        return feedSuppression(key: key(of: token), value: value)
    }

    /// The key of a suppression of a control's token.
    func key(of token: [UInt8]) -> [UInt8] {
        token.withUnsafeBufferPointer {
            RecordKey.token(route: state.routing[route], token: $0)
        }
    }

    func feedSuppression(key: [UInt8], value: [UInt8]?) -> UnreadableRecord? {
        key.withUnsafeBytes { key in
            guard let value else {
                return feed.suppression(key: key, value: nil, timestamp: now.wall, &state)
            }
            return value.withUnsafeBytes {
                feed.suppression(key: key, value: $0, timestamp: now.wall, &state)
            }
        }
    }

    /// What the registration that was fed last has changed.
    var changes: AudienceChanges { feed.changes }

    func token(_ bytes: [UInt8]) -> TokenID? {
        bytes.withUnsafeBytes { state.audience.token(route, $0) }
    }

    func isSuppressed(_ bytes: [UInt8]) -> Bool {
        token(bytes).map { state.audience.isSuppressed($0) } ?? false
    }

    /// The tokens that show this subject, in the order of its list.
    func shows(_ subject: String) -> [[UInt8]] {
        guard let id = self.subject(subject) else { return [] }
        return (0..<state.audience.count(id)).map { position in
            Array(state.audience.tokenBytes(of: state.audience.entry(id, at: position).token))
        }
    }

    func subject(_ name: String) -> SubjectID? {
        Array(name.utf8).withUnsafeBytes { bytes in
            state.audience.subject(state.routing.app(named: Self.app)!, bytes)
        }
    }
}
