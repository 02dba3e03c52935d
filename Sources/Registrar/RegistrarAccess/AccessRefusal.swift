// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Why a caller is not let in, as an answer has it. No part quotes what the caller has sent.
package struct AccessRefusal: Error, Hashable, Sendable {
    /// The names of the problems' types, and the status of each.
    package enum Problem: String, CaseIterable, Sendable {
        case credentialsRequired, credentialsMalformed, schemeNotOffered
        case serviceKeyUnknown
        case tokenRefused, tokenExpired, tokenKeyUnknown, tokenKeysUnavailable
        case credentialRefused, assertionRefused, assertionOutdated
        case appNotAllowed, installationNotAllowed, subjectNotAllowed
        case attestationNotOffered, attestationRefused, challengeRefused, installationClaimed

        package var status: Int {
            switch self {
            case .credentialsRequired, .credentialsMalformed, .schemeNotOffered,
                .serviceKeyUnknown, .tokenRefused, .tokenExpired, .tokenKeyUnknown,
                .credentialRefused, .assertionRefused, .assertionOutdated:
                401
            case .appNotAllowed, .installationNotAllowed, .subjectNotAllowed,
                .attestationNotOffered, .attestationRefused, .challengeRefused,
                .installationClaimed:
                403
            // Nobody can tell whether the token is good.
            case .tokenKeysUnavailable: 503
            }
        }
    }

    package let problem: Problem
    /// What was found, in one sentence.
    package let detail: String
    /// What the caller may do, in one sentence.
    package let remedy: String
    /// The value of the answer's header; nil unless the status is 401.
    package internal(set) var wwwAuthenticate: String?

    package var status: Int { problem.status }

    init(_ problem: Problem, _ detail: String, remedy: String) {
        self.problem = problem
        self.detail = detail
        self.remedy = remedy
    }

    static func app(_ remedy: String) -> AccessRefusal {
        AccessRefusal(
            .appNotAllowed, "The credentials are not for this app and environment.", remedy: remedy)
    }

    static func installation(_ detail: String, remedy: String) -> AccessRefusal {
        AccessRefusal(.installationNotAllowed, detail, remedy: remedy)
    }

    /// For an attestation of another key than the one that the installation is for.
    package static func claimed(until end: WallTime) -> AccessRefusal {
        AccessRefusal(
            .installationClaimed,
            "Another key has attested itself for this installation; it is good until \(end.rfc3339).",
            remedy: "Register under another installation identifier, or have this one deleted.")
    }

    /// For a caller that `Caller.allows(subject:)` does not let write a subject.
    package static let subject = AccessRefusal(
        .subjectNotAllowed, "The token does not allow this subject.",
        remedy: "Ask the token's issuer for a token whose subject prefixes cover it.")
}

/// A way to show who one is, as `authorization` names it.
enum AccessScheme: String, Sendable, CaseIterable {
    case bearer = "Bearer"
    case appAttest = "AppAttest"

    /// A challenge of RFC 9110, 11.6.1; for a bearer with the error code of RFC 6750, 3.1.
    func challenge(_ problem: AccessRefusal.Problem?) -> String {
        let start = "\(rawValue) realm=\"lamplighter\""
        switch problem {
        case nil, .credentialsRequired, .schemeNotOffered: return start
        case .credentialsMalformed: return start + ", error=\"invalid_request\""
        default: return start + ", error=\"invalid_token\""
        }
    }
}
