// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FoundationEssentials
import HTTPListener
import PushModel
import Worker

/// Where a worker answers operators, as somebody writes it on a command line: `http://worker-1:9465`,
/// or `worker-1:9465`.
struct WorkerURL: Sendable, Hashable {
    /// The URL with a scheme, and without a slash at its end.
    let text: String

    /// Why a text is no such URL, and what to write.
    struct Wrong: Error, Hashable, Sendable {
        let message: String
    }

    init(_ written: String) throws(Wrong) {
        let shown = written.printable
        // As a host it would be an address that nobody means.
        if !written.isEmpty, written.utf8.allSatisfy(Self.isDigit) {
            throw Wrong(message: "'\(shown)' is a port without a host: write 127.0.0.1:\(shown)")
        }
        let full = written.contains("://") ? written : "http://\(written)"
        if let port = Self.port(of: full), UInt16(port) ?? 0 == 0 {
            throw Wrong(message: "'\(shown)': a port is a number from 1 to 65535")
        }
        guard let url = URLComponents(string: full), let host = url.host, !host.isEmpty,
            url.scheme == "http" || url.scheme == "https", url.user == nil, url.query == nil
        else {
            throw Wrong(
                message: "'\(shown)' is not the URL of a worker, such as http://worker-1:9465")
        }
        text = full.hasSuffix("/") ? String(full.dropLast()) : full
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    /// What stands where a port belongs; nil if there is nothing.
    private static func port(of url: String) -> Substring? {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        let authority = url[start...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        // An IPv6 address in brackets has colons of its own.
        let end = authority.lastIndex(of: "]") ?? authority.startIndex
        guard let colon = authority[end...].lastIndex(of: ":") else { return nil }
        return authority[colon...].dropFirst()
    }

    /// Why a worker has taken the connection and closed it without a whole answer, and what to do.
    ///
    /// - Parameter cause: the text of libcurl.
    func lost(_ cause: String) -> String {
        let count = HTTPListenerSettings.Limits().connectionsPerPeerMax
        return "\(text) accepted the connection and closed it at once, or before its answer was "
            + "whole (\(cause)): a worker does so while \(count) connections from this address are open; "
            + "end other clients, such as live pages, scripts and tunnels, and ask again; if there "
            + "are none, see in its log whether it ended"
    }

    /// Why there is no TLS session with a worker, and what to write.
    ///
    /// - Parameter cause: the text of OpenSSL.
    func withoutTLS(_ cause: String) -> String {
        let plain = "http" + text.dropFirst("https".count)
        return "\(text) answers without TLS (\(cause)): a worker's admin.port speaks plain HTTP; "
            + "write \(plain), or the URL of a proxy in front of it that has TLS"
    }
}
