// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel

extension TrippedBreaker {
    /// What an operator can do.
    var remedy: String {
        if case .topicRefused(let reason) = cause { return APNSAdvice.topic(reason, of: app) }
        return cause.remedy
    }

    /// Why pushes wait.
    var words: String {
        unknownReason.map { "APNs answers \($0.printable), which Lamplighter does not know" }
            ?? cause.words
    }

    /// Why pushes wait, and what an operator can do.
    var advice: String { "\(words): \(remedy)" }
}

extension TrippedBreaker.Cause {
    /// Why pushes wait, as far as the cause tells.
    fileprivate var words: String {
        switch self {
        case .credentialRefused(.none): "APNs refuses them without a reason"
        case .credentialRefused(let reason), .topicRefused(let reason):
            "APNs answers \(reason.name)"
        case .ill: "half of APNs's latest answers are 5xx or missing"
        case .silent: "APNs does not answer"
        }
    }

    /// What an operator can do, whichever app it is.
    var remedy: String {
        switch self {
        case .credentialRefused(let reason): APNSAdvice.credential(reason)
        case .topicRefused(let reason): APNSAdvice.topic(reason)
        case .ill:
            "see Apple's system status (developer.apple.com/system-status); the worker tries again "
                + "by itself, and keeps the pushes until they expire"
        case .silent:
            "check this machine's way to the APNs endpoint (firewall, proxy), and Apple's system "
                + "status (developer.apple.com/system-status); the worker tries again by itself"
        }
    }
}
