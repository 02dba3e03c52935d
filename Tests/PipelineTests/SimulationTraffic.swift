// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import RecordFormats

/// What apps and producers write, at random but small: few subjects, kinds and tokens, so that
/// everything meets everything.
struct SimulationTraffic {
    private var dice: SplitMix64
    private var serial = 0
    private let installations: UInt64
    /// The latest registrations: the phones on which somebody else may sign in.
    private var phones: [RegistrationDraft] = []
    private static let kinds = ["door", "lamp"]

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
        installations = 6 + dice.next(below: 14)
    }

    private mutating func chance(_ percent: UInt64) -> Bool { dice.next(below: 100) < percent }

    private mutating func subject() -> String {
        chance(40) ? "hot" : "s\(dice.next(below: 6))"
    }

    // MARK: Registrations

    mutating func registration(now: Now) -> SimulatedTableRecord {
        let wall = now.wall + SimulatedClocks.error(&dice)
        let environment: PushEnvironment = chance(85) ? .production : .development
        var draft = RegistrationDraft(
            environment: environment, app: SimulationWorker.app,
            installation: "I\(dice.next(below: installations))", handler: "H")
        let key = RegistrationEncoder.key(draft)
        if chance(15) {
            return SimulatedTableRecord(
                key: key, value: nil, timestamp: wall, meaning: .unregistered)
        }
        if chance(4) {
            return SimulatedTableRecord(
                key: key, value: Array("{\"v\":9}".utf8), timestamp: wall,
                meaning: .unreadable)
        }
        // Mostly the installation's clock; now and then the snapshot was long on its way.
        let late = chance(10) ? Duration.milliseconds(Int64(dice.next(below: 5000))) : .zero
        let time = WallTime(milliseconds: wall.milliseconds - late.nanoseconds / 1_000_000)
        draft.registeredAt = time
        var rows: [SimulatedRow] = []
        for _ in 0...dice.next(below: 2) {
            draft.targets.append(target(of: draft, rows: &rows))
        }
        phones = phones.suffix(7) + [draft]
        return SimulatedTableRecord(
            key: key, value: RegistrationEncoder.value(draft), timestamp: wall,
            meaning: .registered(rows, at: time))
    }

    /// Somebody else signs in on a phone: its tokens show other subjects, half of the time under
    /// another installation, and then one of the two records may come first.
    mutating func otherOwner(now: Now) -> [SimulatedTableRecord] {
        guard !phones.isEmpty else { return [] }
        var draft = phones[Int(dice.next(below: UInt64(phones.count)))]
        let left = SimulatedTableRecord(
            key: RegistrationEncoder.key(draft), value: nil, timestamp: now.wall,
            meaning: .unregistered)
        let moves = chance(50)
        if moves { draft.installation = "I\(dice.next(below: installations))" }
        draft.registeredAt = now.wall
        var rows: [SimulatedRow] = []
        for index in draft.targets.indices {
            let subjects = (0...dice.next(below: 2)).map { _ in subject() }
            let kind = draft.targets[index].shows[0].kind
            draft.targets[index].shows = [RegistrationDraft.Show(kind: kind, subjects: subjects)]
            rows += Self.rows(of: draft.targets[index], in: draft)
        }
        let entered = SimulatedTableRecord(
            key: RegistrationEncoder.key(draft), value: RegistrationEncoder.value(draft),
            timestamp: now.wall, meaning: .registered(rows, at: now.wall))
        guard moves, left.key != entered.key else { return [entered] }
        return chance(50) ? [left, entered] : [entered, left]
    }

    private mutating func target(
        of draft: RegistrationDraft, rows: inout [SimulatedRow]
    ) -> RegistrationDraft.Target {
        let tokenClass = [TokenClass.control, .widget, .device][Int(dice.next(below: 3))]
        // An installation has a token or two of each class, and some belong to several.
        let number =
            chance(15)
            ? dice.next(below: 4) + 240 : StableHash.hash64(draft.installation, dice.next(below: 2))
        var bytes: [UInt8] = [
            UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8),
            tokenClass.rawValue, 0xAB,
        ]
        if number % 16 == 0 { bytes += Array(repeating: 7, count: 130) }
        var target = RegistrationDraft.Target(tokenClass: tokenClass, token: bytes, shows: [])
        target.hearsChanges = tokenClass == .device && chance(50)
        let most: UInt64 = tokenClass == .widget ? 6 : 2
        let kind = chance(85) ? Self.kinds[Int(dice.next(below: 2))] : nil
        let subjects = (0...dice.next(below: most)).map { _ in subject() }
        target.shows = [RegistrationDraft.Show(kind: kind, subjects: subjects)]
        rows += Self.rows(of: target, in: draft)
        return target
    }

    private static func rows(
        of target: RegistrationDraft.Target, in draft: RegistrationDraft
    ) -> [SimulatedRow] {
        let token = SimulatedToken(
            environment: draft.environment, tokenClass: target.tokenClass, bytes: target.token!)
        return target.shows.flatMap { show in
            // To the model, an installation is one more subject.
            (show.subjects + [SimulatedEvent.subject(ofInstallation: draft.installation)]).map {
                subject in
                SimulatedRow(
                    token: token, kind: show.kind, subject: subject,
                    hearsChanges: target.tokenClass != .device || target.hearsChanges)
            }
        }
    }

    // MARK: Events

    mutating func event(
        at offset: Int64, now: Now
    ) -> SimulatedEventRecord {
        serial += 1
        let wall = now.wall + SimulatedClocks.error(&dice)
        if chance(4) {
            return SimulatedEventRecord(
                number: serial, offset: offset, key: "s1", value: chance(50) ? "{" : "{\"v\":7}",
                timestamp: wall, event: nil)
        }
        var event = SimulatedEvent(serial: serial, subject: subject(), expiresAt: wall)
        var key: String?
        var value: String?
        var life: Int64 = 24 * 3600
        if chance(50) {
            value = members(of: &event, life: &life)
            key = event.subject
            if event.subject != nil, chance(15) {
                let installation = "I\(dice.next(below: installations))"
                event.subject = SimulatedEvent.subject(ofInstallation: installation)
                value = String(value!.dropLast()) + ",\"installation\":\"\(installation)\"}"
            }
        } else {
            key = event.subject
        }
        event.expiresAt = wall + .seconds(life)
        return SimulatedEventRecord(
            number: serial, offset: offset, key: key, value: value, timestamp: wall, event: event)
    }

    /// The number of a record that is written again.
    mutating func nextNumber() -> Int {
        serial += 1
        return serial
    }

    private mutating func members(of event: inout SimulatedEvent, life: inout Int64) -> String {
        var json = "{\"v\":1"
        if chance(30) {
            let collapseID = chance(50) ? "c\(dice.next(below: 2))" : nil
            let isAlert = chance(60)
            let inside = isAlert ? "\"alert\":\"\(serial)\"" : "\"content-available\":1"
            let body = "{\"aps\":{\(inside)},\"n\":\(serial)}"
            event.payload = SimulatedEvent.Payload(
                type: isAlert ? .alert : .background, body: body, collapseID: collapseID)
            json += ",\"payload\":\(body)"
            if let collapseID { json += ",\"collapseID\":\"\(collapseID)\"" }
            life = 3600
        }
        if chance(25) {
            event.kinds = chance(70) ? [Self.kinds[Int(dice.next(below: 2))]] : Self.kinds
            if event.payload == nil, chance(40) { event.subject = nil }
            json += ",\"kinds\":[\(event.kinds.map { "\"\($0)\"" }.joined(separator: ","))]"
        }
        if chance(15) {
            event.environment = chance(70) ? .production : .development
            json += ",\"environment\":\"\(event.environment!.name)\""
        }
        if chance(15) {
            // A payload that the classes leave nobody for is no event.
            let isForDevices = chance(50) || event.payload != nil
            event.classes = [isForDevices ? .device : .control]
            json += ",\"classes\":[\"\(event.classes[0].name)\"]"
        }
        if chance(30) {
            life = Int64(1 + dice.next(below: 6))
            json += ",\"ttlSeconds\":\(life)"
        }
        return json + "}"
    }
}

extension StableHash {
    static func hash64(_ text: String, _ seed: UInt64) -> UInt64 {
        var text = text
        return text.withUTF8 { hash64(UnsafeRawBufferPointer($0), seed: seed) }
    }
}
