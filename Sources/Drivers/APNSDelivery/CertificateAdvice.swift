// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl

/// What a worker's log says to do about an APNs certificate that is refused.
enum CertificateAdvice {
    static func remedy(_ fault: ExchangeFailure.CertificateFault) -> String {
        switch fault {
        case .expired: "compare this machine's clock; if it is right, renew the certificate"
        case .notYetValid: "set this machine's clock"
        case .untrusted: "install current ca-certificates, or set the endpoint's CA file"
        case .otherName: "check apns.endpoints' host and serverName: it names neither"
        }
    }

    /// - Parameter verifyResult: OpenSSL's result of verifying the certificate chain.
    static func remedy(verifyResult: Int) -> String {
        remedy(ExchangeFailure.CertificateFault(verifyResult: verifyResult))
    }

    static let unreadableCAFile = "apns.caFile must name a readable PEM file"
}
