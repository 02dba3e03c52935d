// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel

/// The pushes of a pool that wait to be sent: prompt and patient ones in lists of their own, each
/// oldest first.
struct WaitingPushes {
    private(set) var prompt = SlotList()
    private(set) var patient = SlotList()
    private var share = PatientShare()
    /// When the pool last had prompt pushes to send.
    private var promptAt = MonotonicTime(nanoseconds: .min)

    /// Streams are kept for prompt pushes for so long after the last one; a large audience without
    /// any beside it is sent on all of them.
    static let keptFor = Duration.seconds(60)

    var isEmpty: Bool { prompt.isEmpty && patient.isEmpty }
    var count: Int { prompt.count &+ patient.count }

    subscript(isPatient isPatient: Bool) -> SlotList {
        get { isPatient ? patient : prompt }
        set { if isPatient { patient = newValue } else { prompt = newValue } }
    }

    mutating func append(
        _ slot: PushSlot, isPatient: Bool, _ states: UnsafeMutablePointer<SlotState>
    ) {
        if isPatient { patient.append(slot, states) } else { prompt.append(slot, states) }
    }

    /// The push is the next of those like it.
    mutating func prepend(_ slot: PushSlot, _ states: UnsafeMutablePointer<SlotState>) {
        if states[Int(slot)].isPatient {
            patient.prepend(slot, states)
        } else {
            prompt.prepend(slot, states)
        }
    }

    /// Dispatching begins: whether there is a prompt push decides what is kept for the next ones.
    mutating func dispatches(at now: MonotonicTime) { if !prompt.isEmpty { promptAt = now } }

    /// How many pushes the part that is next may be.
    func most(of part: SendingPart) -> Int {
        switch part {
        case .owed: min(share.owed, patient.count)
        case .prompt: prompt.count
        case .patient: patient.count
        }
    }

    /// Pushes were given to a connection.
    mutating func sent(_ count: Int, of part: SendingPart) {
        if part.isPatient {
            share.patientWent(count)
        } else {
            share.promptWent(count, isWaitedFor: !patient.isEmpty)
        }
    }

    /// Whether pushes of this part leave streams free.
    func isKeptBack(_ part: SendingPart, at now: MonotonicTime) -> Bool {
        part.isKeptBack && promptAt.nanoseconds != .min && now - promptAt < Self.keptFor
    }

    /// The part of the push that is next. There must be one.
    var next: SendingPart {
        if most(of: .owed) > 0 { return .owed }
        return prompt.isEmpty ? .patient : .prompt
    }
}
