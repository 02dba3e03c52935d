// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats

/// How the records of one Kafka topic are read as events.
package struct TopicBinding: Sendable, Equatable {
    /// What a record's value is.
    ///
    /// - `key`: never looked at. The record says that the subject changed, nothing else.
    /// - `json`, without a subject template: an event of ours (docs/schemas/event.schema.json), or
    ///   a CloudEvent in either mode. A null or empty value says "the subject in the key changed";
    ///   such a record's headers are not looked at, so a topic that carries binary CloudEvents
    ///   without data must say `cloudevents`.
    /// - `json`, with a subject template: the producer's own document. Only the template's pointers
    ///   are read from it, so that a field that happens to be called `priority` means nothing here.
    /// - `cloudevents`: a CloudEvent 1.0; anything else is unreadable. A subject template, if any,
    ///   replaces the attribute `subject`; its pointers start at the record's value.
    package enum Decode: String, CaseIterable, Sendable {
        case key, json, cloudevents
    }

    package var decode: Decode
    /// How the subject is composed; nil takes the event's own subject, else the record's key.
    package var subject: SubjectTemplate?
    /// The app of events that name none.
    package var app: String?
    /// The kinds of events that name none; empty means any kind.
    package var kinds: [String]
    package var classes: TokenClassSet
    /// The life of events that do not give their own.
    package var ttl: Duration?
    /// How long planning waits before it sends; see `Event.delay`.
    package var delay: Duration

    package init(
        decode: Decode, subject: SubjectTemplate? = nil, app: String? = nil, kinds: [String] = [],
        classes: TokenClassSet = .all, ttl: Duration? = nil, delay: Duration = .zero
    ) {
        self.decode = decode
        self.subject = subject
        self.app = app
        self.kinds = kinds
        self.classes = classes
        self.ttl = ttl
        self.delay = delay
    }

    /// The binding of `lamplighter.events` unless configured otherwise.
    package static let standard = TopicBinding(decode: .json)

    /// Whether the topic's records are events of ours, so that a worker may write shards to it.
    package var holdsOwnEvents: Bool { decode == .json && subject == nil }

    /// What is wrong with the binding, so that the worker must not start; nil if nothing is.
    package func problem(in routing: RoutingTable) -> TopicBindingError? {
        if let app, routing.app(named: app) == nil { return .unknownApp(app) }
        if decode == .key, let subject, subject.needsJSON {
            return .pointerWithoutJSON(subject.text)
        }
        let longest = Duration.seconds(RecordLimits.ttlSecondsMax)
        if let ttl, ttl <= .zero || ttl > longest { return .ttlOutOfRange(ttl) }
        if delay < .zero || delay > longest { return .delayOutOfRange(delay) }
        return nil
    }
}

package enum TopicBindingError: Error, Sendable, Equatable {
    case unknownApp(String)
    case pointerWithoutJSON(String)
    case ttlOutOfRange(Duration)
    case delayOutOfRange(Duration)

    package var message: String {
        switch self {
        case .unknownApp(let app):
            "app: no credential serves \(app); add it to a credential's apps or correct it"
        case .pointerWithoutJSON(let template):
            "subject: \(template) reads JSON, but decode is key; say decode: json"
        case .ttlOutOfRange(let ttl):
            "ttl: \(ttl) is not within 0 s and 30 days, the longest that APNs keeps a push"
        case .delayOutOfRange(let delay): "delay: \(delay) is not within 0 s and 30 days"
        }
    }
}
