// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
package import PushModel
internal import RecordFormats

/// Applies records of registrations and suppressions to the index.
struct AudienceFeed: ~Copyable {
    private var registrations: RegistrationDecoder
    private var suppressions: TokenRecordDecoder
    /// The content of the record that was decoded last; kept to reuse its memory.
    private var registration = Registration()
    private var tokenKey = TokenKey()
    /// What the registration that was applied last has changed; kept to reuse its memory.
    private(set) var changes = AudienceChanges()
    var handlers: HandlerNames

    init(routing: RoutingTable) {
        handlers = HandlerNames(apps: routing.apps.count)
        registrations = RegistrationDecoder(routing: routing)
        suppressions = TokenRecordDecoder(routing: routing)
    }

    /// - Returns: why the record was skipped, if it was.
    mutating func registration(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime,
        _ state: inout PipelineState
    ) -> UnreadableRecord? {
        let skipped = registrations.skippedTargets
        do throws(UnreadableRecord) {
            switch try registrations.decode(
                key: key, value: value, timestamp: timestamp, into: &registration)
            {
            case .replaced:
                state.add(state.audience.apply(registration, changes: &changes))
                state.setAside.add(
                    .registrationRows, "unknownTarget",
                    count: Int(registrations.skippedTargets - skipped))
                handlers.note(key: registration.key, of: registration.app)
            case .removed:
                registration.key.withUnsafeBytes { key in
                    _ = state.audience.remove(key: key, changes: &changes)
                }
            }
        } catch {
            if !error.isLeftOut { state.setAside.add(.registrations, error.code) }
            return error
        }
        state.counters.registrationsRead += 1
        return nil
    }

    /// - Returns: why the record was skipped, if it was.
    mutating func suppression(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime,
        _ state: inout PipelineState
    ) -> UnreadableRecord? {
        do throws(UnreadableRecord) {
            let suppression = try suppressions.suppression(
                key: key, value: value, timestamp: timestamp, into: &tokenKey)
            tokenKey.token.withUnsafeBytes { token in
                if let suppression {
                    _ = state.audience.apply(
                        suppression: suppression, recordedAt: timestamp, route: tokenKey.route,
                        token: token)
                } else {
                    _ = state.audience.revokeSuppression(route: tokenKey.route, token: token)
                }
            }
        } catch {
            if error.isLeftOut { return nil }
            state.setAside.add(.suppressions, error.code)
            return error
        }
        state.counters.suppressionsRead += 1
        return nil
    }
}

/// A record of a compacted topic, which is lent for the time of a call.
package struct TableRecord {
    package var key: UnsafeRawBufferPointer?
    package var value: UnsafeRawBufferPointer?
    package var timestamp: WallTime
    package var partition: Int32
    package var offset: Int64

    package init(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime,
        partition: Int32, offset: Int64
    ) {
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.partition = partition
        self.offset = offset
    }
}
