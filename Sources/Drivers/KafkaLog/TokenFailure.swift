// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl

/// Why the token endpoint gave no token: what is wrong, where, and what to do. It never holds the
/// client's secret or a token, and its text is the same for the same failure.
package struct TokenFailure: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        /// The endpoint does not answer.
        case unreachable
        /// The endpoint refuses the request, which is a matter of configuration.
        case refused
        /// The endpoint has a fault of its own, or answers without a usable token.
        case unusable
    }

    package let kind: Kind
    package let description: String

    /// - Parameter endpoint: the endpoint's URL, as it may be shown.
    init(_ kind: Kind, _ endpoint: String, _ wrong: String, remedy: String) {
        self.kind = kind
        description = "the token endpoint \(endpoint) \(wrong): \(remedy)"
    }

    init(_ failure: ExchangeFailure, endpoint: String) {
        let url = OIDCSettings.Property.endpoint.rawValue
        let caFile = OIDCSettings.Property.caFile.rawValue
        let (wrong, remedy): (String, String) =
            switch failure.kind {
            case .unresolvedHost, .unresolvedProxy:
                ("has a host name that does not resolve", "check \(url) and the DNS")
            case .refused:
                ("takes no connection", "check \(url), and whether it runs")
            case .connectTimeout:
                ("cannot be reached in time", "check \(url) and the network")
            case .handshakeTimeout:
                ("takes a connection and makes no TLS session", "check that \(url) is an HTTPS URL")
            case .answerTimeout:
                ("takes the request and does not answer in time", "see why it is slow")
            case .certificate(let fault):
                Self.words(for: fault, caFile: caFile)
            case .unreadableCAFile:
                ("cannot be verified", "\(caFile) must name a readable PEM file")
            case .handshake:
                ("makes no TLS session (\(failure.text))", "check that \(url) is an HTTPS URL")
            case .lost, .proxyStatus:
                ("ends the connection without an answer", "check \(url)")
            case .notHTTP:
                ("does not speak HTTP", "check \(url)")
            case .tooLarge:
                ("does not answer with a token (\(failure.text))", "check \(url)")
            case .other:
                ("cannot be asked (\(failure.text))", "check \(url)")
            }
        self.init(.unreachable, endpoint, wrong, remedy: remedy)
    }

    private static func words(
        for fault: ExchangeFailure.CertificateFault, caFile: String
    ) -> (String, String) {
        switch fault {
        case .expired: ("shows an expired certificate", "renew it, or set this machine's clock")
        case .notYetValid:
            ("shows a certificate that is not valid yet", "set this machine's clock")
        case .untrusted:
            (
                "shows a certificate that no trusted authority has signed",
                "name its authority's PEM file in \(caFile), or install ca-certificates"
            )
        case .otherName:
            (
                "shows the certificate of another host",
                "check the host in \(OIDCSettings.Property.endpoint.rawValue)"
            )
        }
    }
}
