// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Foundation
import Intake
import Pipeline
import PushModel
import RecordFormats
import Worker

/// Why a record that a user wants to write would be useless to a worker.
struct UselessRecord: Error, Hashable, Sendable {
    /// Whether the configuration lacks something that the record needs; otherwise the record is at
    /// fault.
    let lacksConfiguration: Bool
    let message: String

    init(_ message: String, lacksConfiguration: Bool = false) {
        self.message = message
        self.lacksConfiguration = lacksConfiguration
    }

    init(_ problem: UnreadableRecord) {
        message = "no worker could read it: \(problem.message)"
        switch UnreadableCode(rawValue: problem.code) {
        case .unknownApp, .unservedEnvironment, .kindWideRefused, .installationRefused:
            lacksConfiguration = true
        default: lacksConfiguration = false
        }
    }
}

/// Checks a record before it is written, with the decoders of a worker of this configuration.
struct RecordTrial {
    let plan: WorkerPlan
    private let now: WallTime

    init(_ plan: WorkerPlan, now: WallTime) {
        self.plan = plan
        self.now = now
    }

    // MARK: Events

    /// The event topic of this name: `WorkerPlan.topicOfEvents`.
    func topicOfEvents(named name: String?) throws(UselessRecord) -> String {
        do throws(UnreadTopic) { return try plan.topicOfEvents(named: name) } catch {
            throw UselessRecord(error.message)
        }
    }

    struct ReadEvent {
        var value: [UInt8]?
        /// The subject or the installation of the event, which differs from the record's key if the
        /// topic's binding has a template.
        var subject: String
        var app: String
    }

    /// Reads an event as a worker would.
    ///
    /// - Parameter draft: the event; nil for a record without a value, whose key is the subject.
    func event(
        _ draft: EventDraft?, key: String, topic: String
    ) throws(UselessRecord) -> ReadEvent {
        let number = plan.eventTopics.firstIndex(of: topic)!
        if draft != nil, !plan.bindings[number].holdsOwnEvents {
            throw UselessRecord(
                "kafka.events binds '\(topic)' to records of another format (decode: "
                    + "\(plan.bindings[number].decode.rawValue)), whose options are not read: leave "
                    + "them out or name another topic")
        }
        let value = draft.map(EventEncoder.value)
        return try read(value, key: key, binding: number, bindings: plan.bindings) { event in
            ReadEvent(
                value: value, subject: String(decoding: event.subject, as: UTF8.self),
                app: plan.routing.name(of: event.app))
        }
    }

    /// The payload of an event as a worker would send it: body and push type; nil if it has none.
    func payload(of draft: EventDraft) throws(UselessRecord) -> EventPayload? {
        try read(
            EventEncoder.value(draft), key: "push", binding: 0, bindings: [.standard]
        ) { $0.payload }
    }

    private func read<Found>(
        _ value: [UInt8]?, key: String, binding: Int, bindings: [TopicBinding],
        _ found: (Event) -> Found
    ) throws(UselessRecord) -> Found {
        var decoder: EventDecoder
        do throws(TopicBindingError) {
            decoder = try EventDecoder(
                bindings: bindings, routing: plan.routing, settings: plan.pipeline.events)
        } catch {
            throw UselessRecord(error.message, lacksConfiguration: true)
        }
        return try Self.lend(Array(key.utf8), value) { key, value in
            let record = EventRecord(binding: binding, key: key, value: value, timestamp: now)
            do throws(UnreadableRecord) {
                guard let event = try decoder.decode(record, now: now, header: { _ in nil }) else {
                    return .failure(
                        UselessRecord("the topic's binding leaves this record out: see its when"))
                }
                return .success(found(event))
            } catch {
                return .failure(UselessRecord(error))
            }
        }.get()
    }

    // MARK: Registrations

    /// Reads a registration as a worker would.
    ///
    /// - Returns: what the user may not have meant, one sentence each.
    func registration(
        key: [UInt8], value: [UInt8]
    ) throws(UselessRecord) -> [String] {
        var decoder = RegistrationDecoder(routing: plan.routing)
        var registration = Registration()
        try Self.lend(key, value) { key, value in
            do throws(UnreadableRecord) {
                _ = try decoder.decode(
                    key: key, value: value, timestamp: now, into: &registration)
                return .success(())
            } catch {
                return .failure(UselessRecord(error))
            }
        }.get()
        let targets = RegistrationText.targets(of: value)
        var notes = RegistrationText.unknownMembers(of: value)
        if targets.isEmpty {
            return notes + ["it has no target: nothing is left under its key"]
        }
        for (number, target) in targets.enumerated() {
            try judge(target, "targets[\(number)]", &notes)
        }
        return notes
    }

    private func judge(
        _ target: RegistrationText.Target, _ place: String, _ notes: inout [String]
    ) throws(UselessRecord) {
        guard let tokenClass = TokenClass(name: target.class) else {
            let known = TokenClass.allCases.map(\.name).joined(separator: ", ")
            throw UselessRecord("\(place): '\(target.class)' is no class, which are \(known)")
        }
        if let onChange = target.onChange {
            guard tokenClass.hearsChangesOnDemand, let type = tokenClass.changeType else {
                throw UselessRecord(
                    "\(place): onChange is for classes device and location alone, and this is a "
                        + "\(tokenClass.name): leave it out")
            }
            guard onChange == type.name else {
                throw UselessRecord("\(place): onChange can only be \(type.name)")
            }
        }
        if target.pushToStart != nil, tokenClass != .liveActivity {
            throw UselessRecord(
                "\(place): pushToStart is for class liveActivity alone, and this is a "
                    + "\(tokenClass.name): leave it out")
        }
        let events = plan.pipeline.events
        let isOfInstallation = events.allowInstallations && tokenClass != .channel
        guard target.showsSubject || target.showsKind || isOfInstallation else {
            throw UselessRecord(
                "\(place) shows nothing, so no event would reach it: give it a subject")
        }
        if target.token == nil {
            notes.append("\(place) has no token yet: nothing is sent to it")
        } else if !target.showsSubject, !events.allowKindWide, !isOfInstallation {
            notes.append(
                "\(place) shows no subject: only events for a whole kind reach it, and "
                    + "intake.allowKindWide is off")
        }
    }

    static func lend<Found>(
        _ key: [UInt8], _ value: [UInt8]?,
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer?) -> Result<Found, UselessRecord>
    ) -> Result<Found, UselessRecord> {
        key.withUnsafeBytes { key in
            guard let value else { return body(key, nil) }
            return value.withUnsafeBytes { body(key, $0) }
        }
    }
}

/// The parts of a registration that workers ignore and its author should know about.
private enum RegistrationText {
    struct Target: Decodable {
        var `class`: String
        var token: String?
        var onChange: String?
        var pushToStart: Bool?
        var shows: [Show]?

        var showsSubject: Bool { shows?.contains { $0.subjects?.isEmpty == false } ?? false }
        var showsKind: Bool { shows?.contains { $0.kind != nil } ?? false }
    }

    struct Show: Decodable {
        var kind: String?
        var subjects: [String]?
    }

    private struct Document: Decodable {
        var targets: [Target]
    }

    /// The members that no worker reads: they are from a later release, or misspelt. One sentence
    /// each.
    static func unknownMembers(of value: [UInt8]) -> [String] {
        struct Show: Decodable {
            var unknown: [String]
            init(from decoder: any Decoder) throws {
                unknown = try Name.unknown(in: decoder, but: ShowField.names)
            }
        }
        struct Target: Decodable {
            var unknown: [String]
            init(from decoder: any Decoder) throws {
                unknown = try Name.unknown(in: decoder, but: TargetField.names)
                let shows = try Name.list("shows", of: Show.self, in: decoder)
                for (number, show) in shows.enumerated() {
                    unknown += show.unknown.map { "shows[\(number)].\($0)" }
                }
            }
        }
        struct Document: Decodable {
            var unknown: [String]
            init(from decoder: any Decoder) throws {
                unknown = try Name.unknown(
                    in: decoder, but: RegistrationField.names)
                let targets = try Name.list("targets", of: Target.self, in: decoder)
                for (number, target) in targets.enumerated() {
                    unknown += target.unknown.map { "targets[\(number)].\($0)" }
                }
            }
        }
        let document = try? JSONDecoder().decode(Document.self, from: Data(value))
        return document?.unknown ?? []
    }

    private struct Name: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }

        static func list<Element: Decodable>(
            _ name: String, of type: Element.Type, in decoder: any Decoder
        ) throws -> [Element] {
            try decoder.container(keyedBy: Name.self)
                .decodeIfPresent([Element].self, forKey: Name(stringValue: name)) ?? []
        }

        /// The members that are not known, each as a sentence that starts with the name.
        static func unknown(in decoder: any Decoder, but known: [String]) throws -> [String] {
            try decoder.container(keyedBy: Name.self).allKeys.map(\.stringValue).sorted()
                .filter { !known.contains($0) }
                .map { name in
                    let near = known.first { Spelling.isSlip(name, for: $0) }
                    return "\(name) is read by nobody in this version"
                        + (near.map { "; the nearest that is read is \($0)" } ?? "")
                }
        }
    }

    /// The targets of a document that the worker's own decoder has accepted.
    static func targets(of value: [UInt8]) -> [Target] {
        (try? JSONDecoder().decode(Document.self, from: Data(value)))?.targets ?? []
    }
}
