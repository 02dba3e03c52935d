// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

extension Audience {
    /// Replaces what this installation's handler showed by what it shows now. A snapshot without
    /// rows removes it, as `remove` does.
    ///
    /// New subscriptions are added before old ones go, and those in both are not touched, so that
    /// a token which is still shown somewhere never loses its row.
    ///
    /// - Parameter changes: is overwritten with what this call changed. The caller keeps it to
    ///   reuse its memory.
    package mutating func apply(
        _ registration: borrowing Registration, changes: inout AudienceChanges
    ) -> SetAside {
        changes.clear()
        var setAside = SetAside()
        resolve(registration, &setAside)
        let identity = registration.key.withUnsafeBytes {
            RegistrationTable.Identity(key: $0, seed: keySeed)
        }
        replace(identity, &changes)
        changes.registration = identity.hash
        return setAside
    }

    /// Removes a registration, as its tombstone demands. Returns false when nothing was known under
    /// this key.
    ///
    /// - Parameter changes: as in `apply`.
    package mutating func remove(
        key: UnsafeRawBufferPointer, changes: inout AudienceChanges
    ) -> Bool {
        changes.clear()
        let identity = RegistrationTable.Identity(key: key, seed: keySeed)
        guard registrations.find(identity) != nil else { return false }
        incoming.removeAll(keepingCapacity: true)
        replace(identity, &changes)
        return true
    }

    // MARK: From names to rows

    /// Fills `incoming` with the snapshot's subscriptions, sorted, each once.
    private mutating func resolve(
        _ registration: borrowing Registration, _ setAside: inout SetAside
    ) {
        incoming.removeAll(keepingCapacity: true)
        lifted.removeAll(keepingCapacity: true)
        registration.bytes.withUnsafeBytes { bytes in
            prefetch(registration, bytes)
            // Rows of one target follow each other, so the target is looked up once.
            var target: Target?
            for row in registration.rows {
                guard Self.isWithinBounds(row) else {
                    setAside.outOfBounds += 1
                    continue
                }
                if target?.isOf(row) != true {
                    target = resolveTarget(row, registration, bytes, &setAside)
                }
                guard let target else {
                    setAside.unroutable += 1
                    continue
                }
                if target.kind == .none, row.kind.count > 0 { setAside.withoutKind += 1 }
                incoming.append(
                    Subscription(
                        token: target.token,
                        subject: row.subject.count == 0
                            ? Subscription.noSubject
                            : subjects.intern(
                                app: registration.app, bytes: bytes[row.subject], scope: .subject),
                        kind: target.kind, hearsChanges: row.hearsChanges))
            }
        }
        sortIncoming()
    }

    private struct Target {
        var row: Registration.Row
        var token: TokenID
        var kind: KindID

        func isOf(_ other: Registration.Row) -> Bool {
            row.token.offset == other.token.offset && row.token.count == other.token.count
                && row.kind.offset == other.kind.offset && row.kind.count == other.kind.count
                && row.tokenClass == other.tokenClass
        }
    }

    /// Finds or makes the token and the kind of a row; nil when there is no route for the row.
    private mutating func resolveTarget(
        _ row: Registration.Row, _ registration: borrowing Registration,
        _ bytes: UnsafeRawBufferPointer, _ setAside: inout SetAside
    ) -> Target? {
        let app = registration.app
        guard let route = routes[registration.environment, app, row.tokenClass] else { return nil }
        let kind = row.kind.count == 0 ? .none : kinds.intern(app, bytes[row.kind]) ?? .none
        let token = tokens.intern(route: route, bytes: bytes[row.token])
        let wasSuppressed = tokens.isSuppressed(token)
        tokens.registered(token, at: registration.registeredAt)
        if wasSuppressed, !tokens.isSuppressed(token) { lifted.append(token) }
        let target = Target(row: row, token: token, kind: kind)
        if !furtherLists.isEmpty { addToFurtherLists(target, registration, bytes) }
        return target
    }

    private mutating func addToFurtherLists(
        _ target: Target, _ registration: borrowing Registration, _ bytes: UnsafeRawBufferPointer
    ) {
        let tokenClass = target.row.tokenClass
        let isReloaded = tokenClass == .control || tokenClass == .widget
        if furtherLists.contains(.kindWide), isReloaded, target.kind != .none {
            add(target, to: .kindWide, of: registration.app, bytes[target.row.kind])
        }
        // A broadcast would reach other installations.
        guard furtherLists.contains(.installations), tokenClass != .channel else { return }
        let app = registration.app
        registration.key.withUnsafeBytes { key in
            guard let name = Registration.installation(in: key),
                name.count <= Self.subjectBytesMax
            else { return }
            add(target, to: .installation, of: app, name)
        }
    }

    private mutating func add(
        _ target: Target, to scope: ListScope, of app: AppID, _ name: UnsafeRawBufferPointer
    ) {
        incoming.append(
            Subscription(
                token: target.token,
                subject: subjects.intern(app: app, bytes: name, scope: scope), kind: target.kind,
                hearsChanges: target.row.hearsChanges))
    }

    private static func isWithinBounds(_ row: Registration.Row) -> Bool {
        (1...tokenBytesMax).contains(Int(row.token.count)) && row.subject.count <= subjectBytesMax
            && row.kind.count <= kindBytesMax
    }

    private mutating func sortIncoming() {
        incoming.sort(by: Subscription.precedes)
        var kept = 0
        for offset in incoming.indices {
            if kept > 0, incoming[kept - 1].isSame(as: incoming[offset]) {
                incoming[kept - 1].hearsChanges =
                    incoming[kept - 1].hearsChanges || incoming[offset].hearsChanges
            } else {
                incoming[kept] = incoming[offset]
                kept += 1
            }
        }
        incoming.removeLast(incoming.count - kept)
    }

    // MARK: Replacing rows

    private mutating func replace(
        _ identity: RegistrationTable.Identity, _ changes: inout AudienceChanges
    ) {
        let old = registrations.find(identity)
        if let old, isUnchanged(old) {
            refresh(old, &changes)
            return
        }
        let new =
            incoming.isEmpty ? nil : registrations.allocate(identity, count: incoming.count)
        if let new { fill(new, from: old, &changes) }
        if let old { dropRemaining(of: old, &changes) }
        registrations.replace(identity, old, with: new)
    }

    private func isUnchanged(_ old: UInt32) -> Bool {
        guard registrations.count(old) == incoming.count else { return false }
        return incoming.indices.allSatisfy { offset in
            registrations[registrations.row(old, offset)].isSame(as: incoming[offset])
        }
    }

    /// Updates a block whose subscriptions are the same as before; only `hearsChanges` may differ.
    private mutating func refresh(_ block: UInt32, _ changes: inout AudienceChanges) {
        for offset in incoming.indices {
            let row = registrations.row(block, offset)
            refresh(row: row, incoming[offset].hearsChanges, &changes)
        }
    }

    private mutating func refresh(
        row: UInt32, _ hearsChanges: Bool, _ changes: inout AudienceChanges
    ) {
        let before = registrations[row].hearsChanges
        registrations[row].hearsChanges = hearsChanges
        if (hearsChanges && !before) || isLifted(registrations[row].token) {
            changes.report(registrations[row])
        }
    }

    private func isLifted(_ token: TokenID) -> Bool {
        !lifted.isEmpty && lifted.contains(token)
    }

    /// Fills the new block by merging. A subscription that the old block has too moves over and
    /// keeps its position in the subject's list; any other is added.
    private mutating func fill(
        _ new: UInt32, from old: UInt32?, _ changes: inout AudienceChanges
    ) {
        let oldCount = old.map { registrations.count($0) } ?? 0
        var oldOffset = 0
        for offset in incoming.indices {
            let subscription = incoming[offset]
            let row = registrations.row(new, offset)
            var match: UInt32?
            while let old, oldOffset < oldCount {
                let candidate = registrations.row(old, oldOffset)
                if Subscription.precedes(subscription, registrations[candidate]) { break }
                oldOffset += 1
                if registrations[candidate].isSame(as: subscription) {
                    match = candidate
                    break
                }
            }
            if let match {
                move(match, to: row)
                refresh(row: row, subscription.hearsChanges, &changes)
            } else {
                add(subscription, at: row, &changes)
            }
        }
    }

    /// Marks a row of an old block whose subscription has moved to the new one.
    private static let movedAway = TokenID(rawValue: 0)

    private mutating func move(_ source: UInt32, to row: UInt32) {
        let subscription = registrations[source]
        registrations[row] = subscription
        registrations[source].token = Self.movedAway
        guard subscription.subject != Subscription.noSubject else { return }
        subjects.set(subscription.subject, at: Int(subscription.position), to: row)
    }

    private mutating func add(
        _ subscription: Subscription, at row: UInt32, _ changes: inout AudienceChanges
    ) {
        tokens.retain(subscription.token)
        kinds.retain(app(of: subscription), subscription.kind)
        registrations[row] = subscription
        guard subscription.subject != Subscription.noSubject else { return }
        registrations[row].position = subjects.append(subscription.subject, row)
        changes.report(subscription)
    }

    private mutating func dropRemaining(of block: UInt32, _ changes: inout AudienceChanges) {
        for offset in 0..<registrations.count(block) {
            let subscription = registrations[registrations.row(block, offset)]
            if subscription.token != Self.movedAway { drop(subscription, &changes) }
        }
    }

    /// The app of the token's route: a registration's rows are all of one app.
    func app(of subscription: Subscription) -> AppID {
        routes.app(of: tokens.route(of: subscription.token))
    }

    private mutating func drop(_ subscription: Subscription, _ changes: inout AudienceChanges) {
        let subject = subscription.subject
        if subject != Subscription.noSubject {
            if let moved = subjects.remove(subject, at: subscription.position) {
                registrations[moved].position = subscription.position
                if subjects.hasCursor(subject) {
                    changes.moved.append(
                        AudienceChanges.Listed(
                            subject: subject, entry: registrations[moved].entry))
                }
            }
            subjects.freeUnlessNeeded(subject)
            // The rows of one token follow each other.
            if changes.narrowed.last != subscription.token {
                changes.narrowed.append(subscription.token)
            }
        }
        kinds.release(app(of: subscription), subscription.kind)
        if tokens.release(subscription.token) {
            changes.removedTokens.append(subscription.token)
        }
    }
}

extension AudienceChanges {
    /// A row is shown that was not shown before. One without a subject is nothing to report.
    fileprivate mutating func report(_ subscription: Subscription) {
        guard subscription.subject != Subscription.noSubject else { return }
        subscribed.append(Listed(subject: subscription.subject, entry: subscription.entry))
    }
}

extension UnsafeRawBufferPointer {
    /// Traps when the slice is not within these bytes.
    subscript(_ slice: Registration.Slice) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            rebasing: self[Int(slice.offset)..<Int(slice.offset) + Int(slice.count)])
    }
}
