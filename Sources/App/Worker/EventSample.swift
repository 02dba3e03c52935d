// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import LinuxIO
internal import Pipeline
package import PushModel
internal import RecordFormats
internal import RecordSchemas
package import SchemaRegistry

/// What real records of events topics would do: read them with `record`, then all registrations with
/// `registration`.
package struct EventSample: ~Copyable {
    /// A record's place, for people.
    package struct Place: Sendable {
        package var topic: Int
        package var partition: Int32
        package var offset: Int64

        package init(topic: Int, partition: Int32, offset: Int64) {
            self.topic = topic
            self.partition = partition
            self.offset = offset
        }
    }

    private struct Name: Hashable {
        var app: AppID
        var subject: [UInt8]
    }

    private struct Topic {
        var events = 0
        var filtered = 0
        /// By code: how many, and the first one's place and message.
        var unreadable: [String: (count: Int, first: String)] = [:]
        var pushTypes: [String: Int] = [:]
        /// The subjects of each event.
        var subjects: [[Name]] = []
        var examples: [String] = []
    }

    private let plan: WorkerPlan
    private let schemas: SchemaSource?
    private var decoder: EventDecoder
    private var registrations: RegistrationDecoder
    private var registration = Registration()
    private var topics: [Topic]
    /// The subjects of the sample, and how many registrations show each.
    private var shown: [Name: Int] = [:]
    /// What each registration shows of the sample.
    private var byKey: [[UInt8]: Set<Name>] = [:]

    private static let examplesMax = 3
    /// How long one schema may be waited for.
    private static let schemaPatience = Duration.seconds(15)

    /// - Parameter registry: where the records' schemas are; nil if none is configured.
    package init(_ plan: WorkerPlan, registry: RegistrySettings?) {
        self.plan = plan
        let schemas = registry.map { SchemaSource($0) {} }
        self.schemas = schemas
        decoder = try! EventDecoder(
            bindings: plan.bindings, routing: plan.routing, settings: plan.pipeline.events,
            schemas: schemas.map { $0.lookup })
        registrations = RegistrationDecoder(routing: plan.routing)
        topics = Array(repeating: Topic(), count: plan.eventTopics.count)
    }

    // MARK: Records

    /// A topic's records follow, from the first: what was read of it is forgotten.
    package mutating func begin(_ topic: Int) { topics[topic] = Topic() }

    package mutating func record(
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
        let subjects = event.subject.isEmpty ? [] : [event.subject] + event.furtherSubjects
        let names = subjects.map { Name(app: event.app, subject: Array($0)) }
        for name in names { shown[name] = 0 }
        // An event for whole kinds names no subject that could be unknown.
        if !names.isEmpty { topics[topic].subjects.append(names) }
        guard topics[topic].examples.count < Self.examplesMax else { return }
        let words = subjects.map { String(decoding: $0, as: UTF8.self) }
        let what = words.isEmpty ? "every control and widget" : words.joined(separator: ", ")
        let payload = event.payload.map { payload in
            ", \(payload.type.name) \(String(decoding: payload.body.prefix(200), as: UTF8.self))"
        }
        topics[topic].examples.append("\(name): \(what)\(payload ?? ", look again")")
    }

    // MARK: Registrations

    package mutating func registration(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime
    ) {
        let bytes = key.map { Array($0) } ?? []
        guard
            let change = try? registrations.decode(
                key: key, value: value, timestamp: timestamp, into: &registration)
        else { return }
        var names: Set<Name> = []
        if change == .replaced {
            for row in registration.rows where row.subject.count > 0 {
                let start = Int(row.subject.offset)
                let subject = registration.bytes[start..<start + Int(row.subject.count)]
                let name = Name(app: registration.app, subject: Array(subject))
                if shown[name] != nil { names.insert(name) }
            }
        }
        for name in byKey[bytes] ?? [] { shown[name]! -= 1 }
        for name in names { shown[name]! += 1 }
        byKey[bytes] = names.isEmpty ? nil : names
    }

    // MARK: Answers

    /// One sentence or two for each topic.
    package var lines: [String] {
        zip(plan.eventTopics, topics).flatMap { name, topic -> [String] in
            let dead = topic.unreadable.values.reduce(0) { $0 + $1.count }
            let types = topic.pushTypes.sorted { $0.key < $1.key }.map { "\($1) \($0)" }
            let payloads = types.isEmpty ? "" : " (\(types.joined(separator: ", ")))"
            let sum =
                "\(name): \(topic.events + topic.filtered + dead) records, \(topic.events) events"
                + "\(payloads), \(topic.filtered) filtered, \(dead) dead letters"
            let unknown = topic.subjects.filter { names in names.allSatisfy { shown[$0] == 0 } }
            var lines = [sum]
            if let first = unknown.first?.first {
                let share = unknown.count * 100 / max(1, topic.events)
                lines.append(
                    "\(name): \(unknown.count) events (\(share) %) name subjects that no registration "
                        + "shows, such as \(String(decoding: first.subject, as: UTF8.self))")
            }
            lines += topic.unreadable.sorted { $0.value.count > $1.value.count }.map {
                "\(name): \($1.count) dead letters for \($0), such as \($1.first)"
            }
            return lines + topic.examples
        }
    }
}
