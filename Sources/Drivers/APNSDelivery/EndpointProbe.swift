// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import OpenSSL
internal import PushModel

/// Finds out why an APNs endpoint leaves a push unanswered, with one libcurl request to the same
/// address, with the pool's server name, trusted roots and proxy.
package struct EndpointProbe {
    private let settings: PoolSettings

    package init(_ settings: PoolSettings) { self.settings = settings }

    /// What is wrong with the endpoint, as a predicate that completes "APNs production (host:443)
    /// …", and what to do about it.
    package struct Finding: Hashable, Sendable {
        package let wrong: String
        package let remedy: String
        /// Whether asking again is useless until the configuration changes.
        package var isConfiguration = false
    }

    /// Sends the request and explains its result. Blocks for at most 11 s.
    package func finding() -> Finding {
        let name = CurlConnection.bracketed(settings.serverName)
        var exchange = HTTPExchange(url: "https://\(name)/")
        exchange.address = (settings.host, settings.port)
        exchange.caFile = settings.caFile
        exchange.offersHTTP2 = true
        if let proxy = settings.proxy { exchange.proxy = HTTPProxy(proxy.text) }
        do throws(ExchangeFailure) {
            let answer = try exchange.perform()
            return answer.isHTTP2
                ? Finding(
                    wrong: "leaves the push unanswered, and answers \(answer.status) to a probe",
                    remedy: "try again; if this persists, find what closes connections on the way")
                : withoutHTTP2
        } catch {
            return finding(of: error, proxy: exchange.proxy?.address)
        }
    }

    private var withoutHTTP2: Finding {
        Finding(
            wrong: "does not speak HTTP/2 (ALPN)",
            remedy: "check apns.endpoints; if it is right, a proxy on the way inspects TLS "
                + "traffic: exempt this host from it")
    }

    private func finding(of failure: ExchangeFailure, proxy: String?) -> Finding {
        switch failure.kind {
        case .unresolvedHost, .refused, .connectTimeout, .lost:
            proxy.map { unreached(failure, by: $0) } ?? unreached(failure)
        case .unresolvedProxy:
            Finding(
                wrong: "cannot be reached: the proxy \(proxy ?? "") has no address",
                remedy: "check apns.proxy and the DNS")
        // The correct status is 407, but tinyproxy answers 401 to wrong credentials.
        case .proxyStatus(401), .proxyStatus(407):
            Finding(
                wrong: "cannot be reached: the proxy \(proxy ?? "") refuses our credentials "
                    + "(\(failure.text))",
                remedy: "check apns.proxy's user and password")
        case .proxyStatus(let status):
            Finding(
                wrong: "cannot be reached: the proxy \(proxy ?? "") answers \(status) to CONNECT",
                remedy: "let it allow CONNECT to \(settings.host):\(settings.port)")
        case .answerTimeout:
            Finding(
                wrong: "takes a connection and answers nothing",
                remedy: "check apns.endpoints, and what blocks traffic on the way")
        case .handshakeTimeout:
            Finding(
                wrong: "takes a connection and makes no TLS session",
                remedy: "check apns.endpoints, and what blocks traffic on the way")
        case .certificate(let fault): finding(of: fault)
        case .unreadableCAFile:
            Finding(
                wrong: "cannot be verified", remedy: CertificateAdvice.unreadableCAFile,
                isConfiguration: true)
        // This is the TLS alert of a server that speaks none of the offered protocols.
        case .handshake where failure.text.contains("no application protocol"): withoutHTTP2
        // Without ALPN libcurl speaks HTTP/1.1, which an HTTP/2 server answers in frames.
        case .notHTTP: withoutHTTP2
        case .handshake:
            Finding(
                wrong: "makes no TLS session: \(TLSError.sentence(of: failure.text))",
                remedy: "check that apns.endpoints names APNs")
        case .tooLarge, .other:
            Finding(
                wrong: "cannot be asked (\(failure.text))",
                remedy: "check apns.endpoints and apns.proxy")
        }
    }

    private func unreached(_ failure: ExchangeFailure) -> Finding {
        switch failure.kind {
        case .unresolvedHost:
            Finding(
                wrong: "has no address", remedy: "check apns.endpoints' host and the DNS")
        case .refused:
            Finding(
                wrong: "takes no connection",
                remedy: "check apns.endpoints' host and port, and the firewall on the way")
        case .connectTimeout:
            Finding(
                wrong: "cannot be reached in time",
                remedy: "let this machine connect to port \(settings.port), or set apns.proxy")
        default:
            Finding(
                wrong: "ends the connection without an answer (\(failure.text))",
                remedy: "check apns.endpoints, and what closes connections on the way")
        }
    }

    private func unreached(_ failure: ExchangeFailure, by proxy: String) -> Finding {
        switch failure.kind {
        case .refused:
            Finding(
                wrong: "cannot be reached: the proxy \(proxy) takes no connection",
                remedy: "check apns.proxy, and whether the proxy runs")
        case .connectTimeout:
            Finding(
                wrong: "cannot be reached in time through the proxy \(proxy)",
                remedy: "check apns.proxy, and whether it reaches \(settings.host)")
        default:
            Finding(
                wrong: "cannot be reached: the proxy \(proxy) ends the connection "
                    + "(\(failure.text))",
                remedy: "check that apns.proxy names an HTTP proxy")
        }
    }

    private func finding(of fault: ExchangeFailure.CertificateFault) -> Finding {
        switch fault {
        case .expired:
            Finding(
                wrong: "shows an expired certificate",
                remedy: "compare this machine's clock; if it is right, renew the certificate")
        case .notYetValid:
            Finding(
                wrong: "shows a certificate that is not valid yet",
                remedy: "set this machine's clock")
        case .untrusted:
            Finding(
                wrong: "shows a certificate that no trusted authority has signed",
                remedy: settings.caFile == nil
                    ? "install ca-certificates, or name the authority's PEM file in apns.caFile"
                    : "name its authority's PEM file in apns.caFile",
                isConfiguration: true)
        case .otherName:
            Finding(
                wrong: "shows a certificate that does not name \(settings.serverName)",
                remedy: "check apns.endpoints' host and serverName", isConfiguration: true)
        }
    }
}
