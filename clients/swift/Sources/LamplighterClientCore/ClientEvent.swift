// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// What became of a snapshot; for the app's log and its tests.
public enum ClientEvent: Sendable {
    /// The registrar has stored it.
    case stored(Snapshot)
    /// The registrar will never accept it: it was set aside and is not sent again. Usually a mistake in
    /// the app, which `problem.field` and `problem.remedy` name.
    case refused(Snapshot, Problem)
    /// The credential was refused, and so was a new one. The snapshot waits.
    case credentialRefused(Problem)
    /// The registrar has the installation's identifier for another key, as after a reinstallation, which
    /// loses the key. What waits goes on under a new identifier.
    case installationRenewed(Problem)
    /// There was no answer, or none that counts; the snapshot waits.
    case unanswered(String)
    /// A file of the outbox could not be read; it was moved to this place.
    case corrupt(URL)
    /// Too many snapshots waited, and this was the oldest.
    case dropped(Snapshot)
    /// The outbox itself failed, for example on a full disk.
    case outboxFailed(String)
}

/// Decides what follows from an answer, and does to the outbox what must be done.
package struct Conclusion: Sendable {
    package enum NextStep: Sendable {
        case done
        /// At once, with a greater sequence.
        case again(Snapshot)
        case renewCredential(CredentialRefusal)
        /// Seconds, if the registrar says how long.
        case later(TimeInterval?)
    }

    let outbox: Outbox
    let now: @Sendable () -> Date
    let report: @Sendable (ClientEvent) -> Void

    package init(
        outbox: Outbox, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (ClientEvent) -> Void
    ) {
        self.outbox = outbox
        self.now = now
        self.report = report
    }

    package func step(after response: Response, to snapshot: Snapshot) throws -> NextStep {
        switch Answer(response, now: now()) {
        case .stored:
            try outbox.acknowledge(snapshot)
            report(.stored(snapshot))
            return .done
        case .stale(let stored):
            do {
                return try outbox.raise(snapshot, above: stored).map { .again($0) } ?? .done
            } catch is Outbox.SequenceExhausted {
                var problem = Problem(status: 409, title: "No sequence is left above \(stored)")
                problem.remedy = "Delete the registration; that forgets its sequence."
                return try refused(snapshot, problem)
            }
        case .credentialRefused(let refusal):
            return .renewCredential(refusal)
        case .later(let seconds, let problem):
            report(.unanswered("HTTP \(problem.status ?? 0) \(problem.title ?? "")"))
            return .later(seconds)
        case .refused(let problem):
            return try refused(snapshot, problem)
        }
    }

    private func refused(_ snapshot: Snapshot, _ problem: Problem) throws -> NextStep {
        let text = (try? JSONEncoder().encode(problem)).map { String(decoding: $0, as: UTF8.self) }
        try outbox.setAside(snapshot, reason: text ?? "HTTP \(problem.status ?? 0)")
        report(.refused(snapshot, problem))
        return .done
    }
}
