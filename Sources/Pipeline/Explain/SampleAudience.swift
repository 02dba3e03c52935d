// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Planning
package import PushModel

/// Whom an event is for, without what it says: events of one kind have one.
package struct EventAddress: Hashable, Sendable {
    package let app: AppID
    /// What `subjects` are; `kindWide` where there are none.
    package let scope: ListScope
    /// Subjects, or the one installation; empty for an event of whole kinds.
    package let subjects: [[UInt8]]
    package let kinds: [String]
    let isAppWide: Bool
    let environment: PushEnvironment?
    let classes: TokenClassSet
    let payloadType: PushType?
    let startsActivity: Bool

    package init(_ event: Event) {
        app = event.app
        scope = event.subject.isEmpty ? .kindWide : event.scope
        subjects =
            event.subject.isEmpty
            ? [] : ([event.subject] + event.furtherSubjects).map { Array($0) }
        kinds = event.kinds
        isAppWide = event.isAppWide
        environment = event.environment
        classes = event.classes
        payloadType = event.payload?.type
        startsActivity = event.payload?.activity?.event == .start
    }

    /// Whether it is for controls and widgets of whole kinds, of the app's every one if it names
    /// none.
    package var isKindWide: Bool { scope == .kindWide }
}

/// An index without pushes, of which a sample of events asks what a worker would count them as.
package struct SampleAudience: ~Copyable {
    private var state: PipelineState
    private var feed: AudienceFeed

    /// - Parameter settings: of which those of events and of the index count.
    package init(routing: RoutingTable, settings: PipelineSettings) {
        var settings = settings
        settings.sizes.slots = 1
        state = PipelineState(routing: routing, settings: settings, slab: PushSlab(slots: 1))
        feed = AudienceFeed(routing: routing)
    }

    /// Applies a record of registrations. One that cannot be used is passed over.
    package mutating func registration(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime
    ) {
        _ = feed.registration(key: key, value: value, timestamp: timestamp, &state)
        state.audience.reclaimRemoved()
    }

    /// What a worker counts such an event as: `matched`, `passedOver` or `unmatched`.
    package func outcome(of address: EventAddress) -> EventTally.Outcome {
        var outcome = EventTally.Outcome.unmatched
        let names =
            address.isAppWide ? state.audience.kindNames(of: address.app) : address.kinds
        let lists =
            address.isKindWide
            ? names.map { state.list(.kindWide, Array($0.utf8), of: address.app) }
            : address.subjects.map { state.list(address.scope, $0, of: address.app) }
        for case let subject? in lists where state.audience.count(subject) > 0 {
            let request = state.request(address, of: subject)
            if FanOut.isForAny(0..<state.audience.count(subject), request, state) {
                return .matched
            }
            outcome = .passedOver
        }
        return outcome
    }
}

extension PipelineState {
    /// The list of this name; nil if nobody is on it.
    func list(_ scope: ListScope, _ name: [UInt8], of app: AppID) -> SubjectID? {
        name.withUnsafeBytes { name in
            audience.list(scope, app, name, hash: audience.hash(app, name, scope))
        }
    }

    /// What such an event asks of each token of a list, whenever it expires.
    func request(_ address: EventAddress, of subject: SubjectID) -> FanOutRequest {
        var filter = AudienceFilter(environment: address.environment, classes: address.classes)
        audience.setKinds(address.kinds, of: address.app, in: &filter)
        var request = FanOutRequest(
            subject: subject, filter: filter, expiresAt: MonotonicTime(nanoseconds: .max),
            origin: nil, readSequence: sequence, subjectTag: 0)
        if let type = address.payloadType {
            request.ask(for: type, startsActivity: address.startsActivity)
        }
        return request
    }
}
