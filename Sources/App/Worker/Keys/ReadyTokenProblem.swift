// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
package import PushModel

/// What to say of a provider token that another service makes, by its age.
package struct ReadyTokenProblem: Sendable {
    /// Whether nothing is sent with the token.
    package let isOver: Bool
    /// What is true of it, after "the provider token of …".
    package let wrong: String
    package let remedy: String

    /// Nil where nothing is to be said.
    init?(age: Duration) {
        let state = ReadyTokenAge(age)
        isOver = state == .over
        switch state {
        case .young, .good: return nil
        case .future:
            wrong = "was made \((.zero - age).rounded) in the future"
            remedy =
                "compare the clock of this machine with that of the service that renews its "
                + "providerTokenFile (NTP)"
        case .late, .over:
            wrong =
                "is \(age.rounded) old, and APNs refuses it after an hour"
                + (state == .over ? ": nothing is sent with it" : "")
            remedy =
                "see why the service that renews its providerTokenFile has not; a new token is taken up "
                + "within seconds"
        }
    }
}

extension SigningKeys {
    /// What is to be said of the tokens that other services make, by the names of their credentials.
    package func readyTokenProblems(at now: Now) -> [(credential: String, ReadyTokenProblem)] {
        credentials.sorted { $0.key < $1.key }.compactMap { name, credential in
            credential.key.ready.flatMap { ReadyTokenProblem(age: $0.age(at: now)) }
                .map { (name, $0) }
        }
    }
}

extension Diagnosis {
    /// A pool whose provider tokens another service makes.
    mutating func reportReadyToken(_ pool: WorkerStatus.Pool) {
        let problem = pool.providerTokenAge.flatMap { ReadyTokenProblem(age: $0) }
        if let problem {
            report(
                problem.isOver ? .error : .warning,
                "the provider token of \(pool.breakerName) \(problem.wrong)", problem.remedy)
        } else if pool.isKeyGone {
            report(
                .warning,
                "the file with the provider token of \(pool.breakerName) cannot be used: this worker "
                    + "sends with the token that it had, and one that starts has none",
                "see the log for what is wrong with its providerTokenFile")
        }
    }
}
