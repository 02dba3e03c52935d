// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Intake
import LinuxIO
import Pipeline
import PushModel
import RecordFormats
import SchemaCodecs
import SchemaRegistry
import Worker

/// What real records of events topics would do: read them with `record`, then all registrations with
/// `registration`.
struct EventSample: ~Copyable {
    /// A record's place, for people.
    struct Place: Sendable {
        var topic: Int
        var partition: Int32
        var offset: Int64

        init(topic: Int, partition: Int32, offset: Int64) {
            self.topic = topic
            self.partition = partition
            self.offset = offset
        }
    }

    private struct Name: Hashable {
        var app: AppID
        var subject: [UInt8]
    }

    private struct Kind: Hashable {
        var app: AppID
        var name: String
    }

    private struct Topic {
        var events = 0
        var filtered = 0
        /// By what the binding wants: how many were left out for it, and the first one's place and
        /// what it has instead; of a few demands.
        var leftOut: [String: (count: Int, first: String)] = [:]
        /// How many were left out for other demands than those.
        var leftOutOtherwise = 0
        /// By code: how many, and the first one's place and message.
        var unreadable: [String: (count: Int, first: String)] = [:]
        var pushTypes: [String: Int] = [:]
        /// Whom the events are for: how many each.
        var addresses: [EventAddress: Int] = [:]
        var examples: [String] = []
    }

    private let plan: WorkerPlan
    private let schemas: SchemaSource?
    private var decoder: EventDecoder
    private var registrations: RegistrationDecoder
    private var registration = Registration()
    private var topics: [Topic]
    /// The subjects of the sample.
    private var subjects: Set<Name> = []
    /// Its installations.
    private var installations: Set<Name> = []
    /// The kinds of which the sample means every control and widget, and the apps of which it means
    /// all.
    private var kinds: Set<Kind> = []
    private var apps: Set<AppID> = []
    /// The registrations that have shown something of the sample, which are in `audience` alone.
    private var keys: Set<[UInt8]> = []
    private var audience: SampleAudience

    private static let examplesMax = 3
    private static let demandsMax = 4
    /// How long one schema may be waited for.
    private static let schemaPatience = Duration.seconds(15)

    /// - Parameter registry: where the records' schemas are; nil if none is configured.
    init(_ plan: WorkerPlan, registry: RegistrySettings?) {
        self.plan = plan
        let schemas = registry.map { SchemaSource($0) {} }
        self.schemas = schemas
        decoder = try! EventDecoder(
            bindings: plan.bindings, routing: plan.routing, settings: plan.pipeline.events,
            schemas: schemas.map { $0.lookup })
        registrations = RegistrationDecoder(routing: plan.routing)
        audience = SampleAudience(routing: plan.routing, settings: plan.pipeline)
        topics = Array(repeating: Topic(), count: plan.eventTopics.count)
    }

    // MARK: Records

    /// A topic's records follow, from the first: what was read of it is forgotten.
    mutating func begin(_ topic: Int) { topics[topic] = Topic() }

    mutating func record(
        at place: Place, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?,
        timestamp: WallTime, now: WallTime, header: (String) -> UnsafeRawBufferPointer?
    ) {
        let record = EventRecord(
            binding: place.topic, key: key, value: value, timestamp: timestamp)
        let name = "\(plan.eventTopics[place.topic])/\(place.partition)/\(place.offset)"
        waitForSchema(of: record)
        do throws(UnreadableRecord) {
            guard let event = try decoder.decode(record, now: now, header: header) else {
                topics[place.topic].filtered += 1
                let reason = decoder.reasonLeftOut(record, now: now, header: header)
                noteLeftOut(reason, name, of: place.topic)
                return
            }
            take(event, named: name, of: place.topic)
        } catch {
            let first = topics[place.topic].unreadable[error.code]
            topics[place.topic].unreadable[error.code] = (
                (first?.count ?? 0) + 1, first?.first ?? "\(name): \(error.message)"
            )
        }
    }

    private mutating func noteLeftOut(_ reason: LeftOutReason, _ name: String, of topic: Int) {
        let known = topics[topic].leftOut[reason.demand]
        guard known != nil || topics[topic].leftOut.count < Self.demandsMax else {
            topics[topic].leftOutOtherwise += 1
            return
        }
        topics[topic].leftOut[reason.demand] = (
            (known?.count ?? 0) + 1, known?.first ?? "\(name): \(reason.text)"
        )
    }

    /// A schema that does not come makes the record unreadable, which its line says.
    private mutating func waitForSchema(of record: EventRecord) {
        let deadline = ContinuousClock.now + Self.schemaPatience
        while let awaited = decoder.awaitedSchema(of: record), awaited.unreachable == nil,
            ContinuousClock.now < deadline
        {
            NamedThread.sleep(.milliseconds(2))
        }
    }

    private mutating func take(_ event: Event, named name: String, of topic: Int) {
        topics[topic].events += 1
        if let type = event.payload?.type {
            topics[topic].pushTypes[type.name, default: 0] += 1
        }
        let address = EventAddress(event)
        topics[topic].addresses[address, default: 0] += 1
        for subject in address.subjects {
            let name = Name(app: event.app, subject: subject)
            if address.scope == .installation {
                installations.insert(name)
            } else {
                subjects.insert(name)
            }
        }
        if address.isKindWide {
            for kind in address.kinds { kinds.insert(Kind(app: event.app, name: kind)) }
            if address.kinds.isEmpty { apps.insert(event.app) }
        }
        guard topics[topic].examples.count < Self.examplesMax else { return }
        let words = address.subjects.map { String(decoding: $0, as: UTF8.self) }
        let what =
            switch address.scope {
            case .subject: words.joined(separator: ", ")
            case .kindWide: "every control and widget"
            case .installation: "an installation"
            }
        let payload = event.payload.map { payload in
            ", \(payload.type.name) \(String(decoding: payload.body.prefix(200), as: UTF8.self))"
        }
        topics[topic].examples.append("\(name): \(what)\(payload ?? ", look again")")
    }

    // MARK: Registrations

    mutating func registration(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime
    ) {
        guard
            let change = try? registrations.decode(
                key: key, value: value, timestamp: timestamp, into: &registration)
        else { return }
        // The index of millions need not fit in memory here: it has what the sample asks for.
        if change == .replaced, isOfSample(registration) { keys.insert(registration.key) }
        guard keys.contains(registration.key) else { return }
        audience.registration(key: key, value: value, timestamp: timestamp)
    }

    private func isOfSample(_ registration: Registration) -> Bool {
        if apps.contains(registration.app) { return true }
        if !installations.isEmpty,
            let installation = registration.key.withUnsafeBytes({ key in
                Registration.installation(in: key).map { Array($0) }
            }), installations.contains(Name(app: registration.app, subject: installation))
        {
            return true
        }
        func bytes(_ slice: Registration.Slice) -> ArraySlice<UInt8> {
            registration.bytes[Int(slice.offset)..<Int(slice.offset) + Int(slice.count)]
        }
        return registration.rows.contains { row in
            subjects.contains(Name(app: registration.app, subject: Array(bytes(row.subject))))
                || !kinds.isEmpty
                    && kinds.contains(
                        Kind(
                            app: registration.app,
                            name: String(decoding: bytes(row.kind), as: UTF8.self)))
        }
    }

    // MARK: Answers

    /// One sentence or two for each topic.
    var lines: [String] {
        zip(plan.eventTopics, topics).flatMap { name, topic -> [String] in
            let dead = topic.unreadable.values.reduce(0) { $0 + $1.count }
            let types = topic.pushTypes.sorted { $0.key < $1.key }.map { "\($1) \($0)" }
            let payloads = types.isEmpty ? "" : " (\(types.joined(separator: ", ")))"
            let sum =
                "\(name): \(topic.events + topic.filtered + dead) records, \(topic.events) events"
                + "\(payloads), \(topic.filtered) filtered, \(dead) dead letters"
            var lines = [sum]
            if topic.events > 0 { lines.append("\(name): \(share(topic))") }
            lines += topic.unreadable.sorted { $0.value.count > $1.value.count }.map {
                "\(name): \($1.count) dead letters for \($0), such as \($1.first)"
            }
            lines += topic.leftOut.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }
                .map { "\(name): \($1.count) filtered, such as \($1.first)" }
            if topic.leftOutOtherwise > 0 {
                lines.append("\(name): and \(topic.leftOutOtherwise) others filtered")
            }
            return lines + notes(name) + topic.examples
        }
    }

    private func notes(_ name: String) -> [String] {
        let notes = decoder.notes[plan.eventTopics.firstIndex(of: name)!].counts
        return notes.sorted { ($1.value, $0.key.message) < ($0.value, $1.key.message) }.map {
            "\(name): of \($1.counted("record")): \($0.message)"
        }
    }

    /// How many events would reach nobody, and why.
    private func share(_ topic: Topic) -> String {
        var counts: [EventTally.Outcome: Int] = [:]
        var examples: [EventTally.Outcome: String] = [:]
        for (address, count) in topic.addresses {
            let outcome = audience.outcome(of: address)
            counts[outcome, default: 0] += count
            guard outcome != .matched, address.scope == .subject,
                let subject = address.subjects.first
            else { continue }
            let example = String(decoding: subject, as: UTF8.self)
            examples[outcome] = min(examples[outcome] ?? example, example)
        }
        let nobody = topic.events - (counts[.matched] ?? 0)
        func part(_ outcome: EventTally.Outcome, _ why: String) -> String? {
            guard let count = counts[outcome] else { return nil }
            return "\(count) because \(why)"
                + (examples[outcome].map { ", such as \($0)\($0.subjectRemark)" } ?? "")
        }
        let isOfInstallations = topic.addresses.keys.contains { $0.scope == .installation }
        let nobodyShows =
            "no registration shows the subject or the kind"
            + (isOfInstallations ? ", or is the installation's" : "")
        let parts = [
            part(.unmatched, nobodyShows),
            part(
                .passedOver,
                "none that does has a token of their classes, kinds, environment or push type"),
        ].compactMap(\.self)
        return "\(nobody) of \(topic.events) events (\(nobody * 100 / topic.events) %) would reach "
            + "nobody" + (parts.isEmpty ? "" : ": " + parts.joined(separator: "; "))
    }
}
