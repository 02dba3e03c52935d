// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel

/// An event that an owner before has spread, and has not come to the end of.
struct Resumption {
    let epoch: UInt32
    let offset: Int64
    let progress: FanOutProgress
    /// Whom that owner had not heard of.
    let newcomers: InheritedNotes.Newcomers

    /// More newcomers than this begin the event anew.
    fileprivate static let newcomersMax = 1024

    fileprivate func newcomers(of subject: SubjectID) -> [AudienceEntry]? {
        switch newcomers {
        case .none: return []
        case .unknown: return nil
        case .some(let entries):
            let ofList = entries[subject] ?? []
            return ofList.count <= Self.newcomersMax ? ofList : nil
        }
    }
}

/// Goes on with events that an owner before has spread: from the part that it has left in its note.
/// The tokens behind it that it had not heard of are told at once, as of an event that has ended.
extension FanOut {
    func isResumed(_ id: AssignmentID, _ position: RecordPosition) -> Bool {
        resumption.map { $0.epoch == id.epoch && $0.offset == position.offset } ?? false
    }

    /// Where the fan-out of the event that is being read begins; nil for its beginning.
    mutating func progressToResume(_ claim: OffsetClaim) -> FanOutProgress? {
        guard let resumed = resumption else { return nil }
        guard resumed.epoch == claim.epoch, resumed.offset == claim.offset else {
            resumption = nil
            return nil
        }
        return resumed.progress
    }

    /// Tells the newcomers of the event whose fan-out was started last. The fan-out goes to all others.
    mutating func tellNewcomers(
        of event: Event, _ ask: ListRequest, _ read: RecordRead, _ state: inout PipelineState,
        _ late: inout LateRegistrations
    ) {
        guard let resumed = resumption.take() else { return }
        let behind = (resumed.newcomers(of: ask.list.subject) ?? []).filter {
            resumed.progress.isBehind(state.audience.tokenBytes(of: $0.token))
        }
        guard !behind.isEmpty else { return }
        let told = ToldEntries(
            entries: behind, ask: ask, isPlain: event.isPlain, claim: state.tracker.claim(read.id))
        late.tell(told, &self, &state, now: read.now)
    }

    /// Forgets the progress of an event of which the newcomers are not known, or very many: it begins
    /// anew.
    mutating func forgetProgress(unlessNewcomersAreKnownOf subject: SubjectID) {
        if let resumed = resumption, resumed.newcomers(of: subject) == nil { resumption = nil }
    }
}

extension Event {
    /// Whether it goes through the list of one subject, or of one kind, as far as it says itself.
    var hasOneList: Bool {
        subject.isEmpty ? !isAppWide && kinds.count == 1 : furtherSubjects.isEmpty
    }
}
