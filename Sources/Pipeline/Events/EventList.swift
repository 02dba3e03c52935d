// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Planning
internal import PushModel

/// A list of tokens that an event goes through, and the hash by which the event is remembered.
struct EventList {
    /// In place of the list, in what is the same for all of an event's lists.
    static var none: EventList { EventList() }

    /// The subject that has the list, or what stands for the kind or the installation; `.none` where
    /// nobody is on it.
    var subject: SubjectID
    var hash: UInt64
    /// The kind's name; nil for the list of a subject or an installation.
    var kind: String?

    private init() { (subject, hash) = (.none, 0) }

    /// The list of the event's subject, or of its installation.
    init(subjectOf event: Event, _ state: borrowing PipelineState) {
        hash = state.audience.hash(event.app, event.subject, event.scope)
        subject = state.audience.list(event.scope, event.app, event.subject, hash: hash) ?? .none
    }

    init(kind name: String, of event: Event, _ state: borrowing PipelineState) {
        var text = name
        (subject, hash) = text.withUTF8 { utf8 in
            let utf8 = UnsafeRawBufferPointer(utf8)
            let hash = state.audience.hash(event.app, utf8, .kindWide)
            return (state.audience.list(.kindWide, event.app, utf8, hash: hash) ?? .none, hash)
        }
        kind = name
    }
}

extension FanOutRequest {
    /// The same for one list of the event. The caller must retain the body.
    func on(_ list: EventList) -> ListRequest {
        var request = self
        request.subject = list.subject
        request.subjectTag = UInt32(truncatingIfNeeded: list.hash)
        return ListRequest(request: request, list: list)
    }
}

extension Audience {
    func count(onList list: EventList) -> Int {
        list.subject == .none ? 0 : count(list.subject)
    }

    /// Sets the filter to the kinds of these names, in their order; no names mean any kind.
    func setKinds(_ names: [String], of app: AppID, in filter: inout AudienceFilter) {
        guard !names.isEmpty else { return }
        filter.kinds = names.map { kind(app, named: $0) ?? .unknown }
        filter.unknownKinds = zip(names, filter.kinds).compactMap { $1 == .unknown ? $0 : nil }
    }
}
