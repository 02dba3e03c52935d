// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CCurl

/// The options that every transfer of ours has, whoever drives it.
enum TransferOptions {
    /// TLS 1.2 or newer, with the server's chain and its name verified.
    /// - Parameter caFile: PEM file of the roots to trust, instead of the system's.
    static func secure(_ easy: UnsafeMutableRawPointer, caFile: String?) {
        check(CCurl_setLong(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)))
        check(CCurl_setLong(easy, CURLOPT_SSL_VERIFYPEER, 1))
        check(CCurl_setLong(easy, CURLOPT_SSL_VERIFYHOST, 2))
        check(CCurl_setLong(easy, CURLOPT_SSL_SESSIONID_CACHE, 0))
        guard let caFile else { return }
        check(CCurl_setString(easy, CURLOPT_CAINFO, caFile))
        // Otherwise the system's roots would be trusted as well.
        check(CCurl_setString(easy, CURLOPT_CAPATH, nil))
    }

    /// - Parameter proxy: nil for none; the process's environment is ignored in either case.
    static func tunnel(_ easy: UnsafeMutableRawPointer, through proxy: HTTPProxy?) {
        // Both empty rather than unset: libcurl would look at http_proxy and no_proxy.
        check(CCurl_setString(easy, CURLOPT_PROXY, proxy?.url ?? ""))
        check(CCurl_setString(easy, CURLOPT_NOPROXY, ""))
        guard proxy != nil else { return }
        check(CCurl_setLong(easy, CURLOPT_HTTPPROXYTUNNEL, 1))
        // The headers are the server's to see, `authorization` above all.
        check(CCurl_setLong(easy, CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE)))
    }

    static func limit(
        _ easy: UnsafeMutableRawPointer, connect: Duration, transfer: Duration
    ) {
        precondition(
            connect > .zero && transfer > .zero,
            "times are above zero: zero is libcurl's own time, or for ever")
        check(CCurl_setLong(easy, CURLOPT_CONNECTTIMEOUT_MS, connect.milliseconds))
        check(CCurl_setLong(easy, CURLOPT_TIMEOUT_MS, transfer.milliseconds))
        // libcurl would use a signal for the timeout of a name look-up.
        check(CCurl_setLong(easy, CURLOPT_NOSIGNAL, 1))
        // Otherwise libcurl would join its resolver's thread when the time is over, and a look-up
        // that nobody answers would hold its caller, such as a delivery thread, for minutes. The
        // thread ends by itself.
        check(CCurl_setLong(easy, CURLOPT_QUICK_EXIT, 1))
    }

    /// `::host:port`, for CURLOPT_CONNECT_TO: instead of any host and any port of the URL.
    static func connectTo(host: String, port: UInt16) -> String {
        let host = host.contains(":") ? "[\(host)]" : host
        return "::\(host):\(port)"
    }

    static func long(_ easy: UnsafeMutableRawPointer, _ field: CURLINFO) -> Int {
        var value = 0
        check(CCurl_getLong(easy, field, &value))
        return value
    }

    /// An option fails for want of memory, or in a libcurl that lacks it.
    static func check(_ code: CURLcode) {
        precondition(code == CURLE_OK, "libcurl: \(CurlCode(code))")
    }
}
