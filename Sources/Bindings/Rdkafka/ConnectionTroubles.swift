// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// What the library says of connections that fail. It keeps that to its log, at a level that
/// depends on the case; the call that waits for a connection only learns that its time is over.
package final class ConnectionTroubles: Sendable {
    private struct State {
        var lines: [(at: ContinuousClock.Instant, text: String)] = []
        var refusal: (at: ContinuousClock.Instant, CertificateRefusal)?
    }

    private let state = Mutex(State())
    /// Takes the configuration's secrets out of a text: brokers may repeat what they refuse.
    package let redact: @Sendable (String) -> String
    /// The most lines kept: brokers are tried in turn, and each fails in the same way.
    private static let linesMax = 16
    /// What the library's lines about a broker that fails, or whose answer it cannot read, are
    /// marked with.
    private static let facilities: Set = ["FAIL", "ERROR", "PROTOERR", "PROTOUFLOW"]

    init(redact: @escaping @Sendable (String) -> String = { $0 }) { self.redact = redact }

    /// The last complaints as they came, oldest first; to be redacted before they are shown.
    /// - Parameter start: leaves out those from before; nil for none.
    package func lines(since start: ContinuousClock.Instant?) -> [String] {
        state.withLock { state in
            state.lines.filter { line in start.map { line.at >= $0 } ?? true }.map(\.text)
        }
    }

    /// The last certificate that was not accepted, unless that was before `start`.
    package func refusal(since start: ContinuousClock.Instant?) -> CertificateRefusal? {
        state.withLock { state in
            guard let (at, refusal) = state.refusal, start.map({ at >= $0 }) ?? true else {
                return nil
            }
            return refusal
        }
    }

    /// Keeps a line of the library's log if it is about a broker that fails.
    func note(facility: String, _ text: String, at now: ContinuousClock.Instant = .now) {
        guard Self.facilities.contains(facility) else { return }
        state.withLock { state in
            if state.lines.count == Self.linesMax { state.lines.removeFirst() }
            state.lines.append((now, text))
        }
    }

    func note(_ refusal: CertificateRefusal, at now: ContinuousClock.Instant = .now) {
        state.withLock { $0.refusal = (now, refusal) }
    }
}

/// A broker's certificate that OpenSSL does not accept.
package struct CertificateRefusal: Hashable, Sendable {
    /// `host:port`.
    package let broker: String
    /// X509_V_ERR_…
    package let code: Int32

    package init(broker: String, code: Int32) {
        self.broker = broker
        self.code = code
    }

    package enum Cause: Hashable, Sendable {
        case expired, notYetValid, otherName, unknownAuthority, other
    }

    /// By openssl/x509_vfy.h, whose numbers are fixed.
    package var cause: Cause {
        switch code {
        case 9: .notYetValid
        case 10: .expired
        case 62, 64: .otherName
        case 2, 18, 19, 20, 21: .unknownAuthority
        default: .other
        }
    }

    package var reason: String {
        switch cause {
        case .expired: "it has expired"
        case .notYetValid: "it is not valid yet"
        case .otherName: "it is for another host name"
        case .unknownAuthority: "no certificate authority that is trusted here has signed it"
        case .other: "OpenSSL's verification error \(code)"
        }
    }
}
