// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CCurl

/// An HTTP proxy to tunnel through with CONNECT, with the user and password that it is given (Basic
/// authentication), if any.
package struct HTTPProxy: Sendable, CustomStringConvertible, CustomReflectable {
    /// `host:port`, without the credentials: what may be shown.
    package let address: String
    /// The URL with the credentials. libcurl can read all of it, so no error text of libcurl's
    /// quotes it.
    let url: String

    /// - Parameter url: `http://user:password@host:port`, user and password percent-encoded. Nil
    ///   for what libcurl would not read, and for `https`, a control character or no port.
    package init?(_ url: String) {
        guard let parsed = curl_url() else { fatalError("out of memory for a CURLU") }
        defer { curl_url_cleanup(parsed) }
        guard curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK,
            Self.part(CURLUPART_SCHEME, of: parsed, absent: CURLUE_NO_SCHEME) == "http",
            let host = Self.part(CURLUPART_HOST, of: parsed, absent: CURLUE_NO_HOST),
            let port = Self.part(CURLUPART_PORT, of: parsed, absent: CURLUE_NO_PORT),
            !host.isEmpty, !port.isEmpty, port != "0",
            Self.part(CURLUPART_USER, of: parsed, absent: CURLUE_NO_USER) != nil,
            Self.part(CURLUPART_PASSWORD, of: parsed, absent: CURLUE_NO_PASSWORD) != nil
        else { return nil }
        self.url = url
        address = "\(host):\(port)"
    }

    package var description: String { address }
    package var customMirror: Mirror { Mirror(self, children: ["address": address]) }

    /// A part of the URL, decoded; empty if it is not there, nil if it cannot be decoded.
    private static func part(
        _ part: CURLUPart, of url: OpaquePointer, absent: CURLUcode
    ) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        let code = curl_url_get(url, part, &text, UInt32(CURLU_URLDECODE))
        defer { curl_free(text) }
        guard code == CURLUE_OK, let text else { return code == absent ? "" : nil }
        return String(cString: text)
    }
}
