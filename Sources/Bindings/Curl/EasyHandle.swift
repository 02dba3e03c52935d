// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CCurl

/// What every request of one connection has in common.
package struct RequestTemplate: Sendable {
    /// `https://` and the name that is sent as SNI and `:authority`, and verified against the
    /// certificate; the path is set for each request.
    package var url: String
    /// Where to connect instead of the URL's host and port.
    package var host: String
    package var port: UInt16
    /// PEM file of trusted roots; nil means the system's.
    package var caFile: String?
    /// The proxy to tunnel through; nil for none. The process's environment is ignored in either
    /// case.
    package var proxy: HTTPProxy?
    package var connectTimeout: Duration
    /// The limit for the whole transfer, waiting and connecting included.
    package var requestTimeout: Duration

    package init(
        url: String, host: String, port: UInt16, caFile: String?, connectTimeout: Duration,
        requestTimeout: Duration
    ) {
        self.url = url
        self.host = host
        self.port = port
        self.caFile = caFile
        self.connectTimeout = connectTimeout
        self.requestTimeout = requestTimeout
    }
}

/// One CURL: a POST at a time over the connection of the multi handle it was made for, which must
/// outlive it. Options are set once; a request sets its target, headers and body.
package struct EasyHandle: ~Copyable {
    let pointer: UnsafeMutableRawPointer
    private let record: UnsafeMutablePointer<TransferRecord>
    private let connectTo: UnsafeMutablePointer<curl_slist>
    package var headers: HeaderList

    /// - Parameter position: the owner's name for it; comes back in `MultiHandle.End`.
    package init(position: Int, template: RequestTemplate, on multi: borrowing MultiHandle) {
        guard let pointer = curl_easy_init(),
            let connectTo = curl_slist_append(
                nil, TransferOptions.connectTo(host: template.host, port: template.port))
        else { fatalError("out of memory for a CURL") }
        self.pointer = pointer
        self.connectTo = connectTo
        record = .allocate(capacity: 1)
        record.initialize(to: TransferRecord(position: position, context: multi.context))
        // libcurl would add the first three to any POST; Expect only to large ones.
        headers = HeaderList(suppressing: ["Accept", "Content-Type", "Content-Length", "Expect"])
        setTransport(template, multi.context)
        TransferOptions.tunnel(pointer, through: template.proxy)
        check(CCurl_setString(pointer, CURLOPT_PROTOCOLS_STR, "https"))
        TransferOptions.secure(pointer, caFile: template.caFile)
        TransferOptions.limit(
            pointer, connect: template.connectTimeout, transfer: template.requestTimeout)
        setMemory()
    }

    deinit {
        curl_easy_cleanup(pointer)
        curl_slist_free_all(connectTo)
        record.pointee.free()
        record.deinitialize(count: 1)
        record.deallocate()
    }

    // MARK: The request

    /// Makes the next request ready, with `headers` as they are now.
    /// - Parameters:
    ///   - target: the path; copied.
    ///   - body: lent until the transfer's end.
    package mutating func prepare(
        tag: UInt32, target: UnsafePointer<CChar>, body: UnsafePointer<UInt8>?, bodyBytes: Int
    ) {
        assert(
            bodyBytes == 0 || bodyBytes > 0 && body != nil,
            "a body has an address and at least 0 bytes: \(bodyBytes)")
        record.pointee.begin(tag: tag)
        _ = headers.link()
        check(CCurl_setString(pointer, CURLOPT_REQUEST_TARGET, target))
        check(CCurl_setLong(pointer, CURLOPT_POSTFIELDSIZE, bodyBytes))
        // libcurl takes a null pointer for "no POST"; any other will do for an empty body.
        let bytes = body.map { UnsafeRawPointer($0) } ?? UnsafeRawPointer(record)
        check(CCurl_setPointer(pointer, CURLOPT_POSTFIELDS, bytes))
    }

    /// That of the multi handle it was made for.
    var connection: UnsafeMutablePointer<ConnectionContext> { record.pointee.context }

    // MARK: The end

    /// The tag that `prepare` was given.
    package var tag: UInt32 { record.pointee.tag }

    /// Whether the request was given to the connection: the server may have it. Until then the
    /// server certainly has not. libcurl is kept from sending it a second time.
    package var wasDispatched: Bool { record.pointee.wasDispatched }

    /// The answer's status; 0 for none.
    package var status: UInt16 {
        UInt16(clamping: long(CURLINFO_RESPONSE_CODE))
    }

    /// The answer's `retry-after`, at most an hour, so that no server can delay a request for
    /// longer.
    package var retryAfterSeconds: UInt16 {
        var seconds: curl_off_t = 0
        check(CCurl_getOffset(pointer, CURLINFO_RETRY_AFTER, &seconds))
        return UInt16(min(max(seconds, 0), 3600))
    }

    /// How long the connect took: name look-up, TCP and TLS. Nil if the request went out on a
    /// connection that was open before, or was not sent.
    package var connectTime: Duration? {
        var microseconds: curl_off_t = 0
        check(CCurl_getOffset(pointer, CURLINFO_APPCONNECT_TIME_T, &microseconds))
        return microseconds > 0 ? .microseconds(Int64(microseconds)) : nil
    }

    package var isHTTP2: Bool { long(CURLINFO_HTTP_VERSION) == CURL_HTTP_VERSION_2_0 }

    /// What the proxy answered to CONNECT; 0 when it was not asked, or did not answer.
    package var proxyStatus: UInt16 { UInt16(clamping: long(CURLINFO_HTTP_CONNECTCODE)) }

    /// What was wrong with the certificate, after `CURLE_PEER_FAILED_VERIFICATION`.
    package var certificateFault: ExchangeFailure.CertificateFault {
        ExchangeFailure.CertificateFault(verifyResult: long(CURLINFO_SSL_VERIFYRESULT))
    }

    /// The first KiB of the answer's body.
    package func withAnswer<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
        body(UnsafeRawBufferPointer(rebasing: record.pointee.answer[..<record.pointee.answerBytes]))
    }

    /// libcurl's words on what went wrong with this transfer; empty when it has none.
    package var errorText: String {
        CurlCode.words(of: String(cString: record.pointee.errorText))
    }

    // MARK: Options

    private func setTransport(
        _ template: RequestTemplate, _ context: UnsafeMutablePointer<ConnectionContext>
    ) {
        check(CCurl_setString(pointer, CURLOPT_URL, template.url))
        check(CCurl_setList(pointer, CURLOPT_CONNECT_TO, connectTo))
        check(CCurl_setLong(pointer, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS)))
        // Wait for the one connection instead of opening another.
        check(CCurl_setLong(pointer, CURLOPT_PIPEWAIT, 1))
        check(CCurl_setLong(pointer, CURLOPT_DNS_CACHE_TIMEOUT, 0))
        // The owner decides how old a connection may become, idle or not.
        check(CCurl_setLong(pointer, CURLOPT_MAXAGE_CONN, 7 * 86_400))
        check(CCurl_setOpenSocketFunction(pointer, ConnectionCallbacks.openSocket))
        check(CCurl_setPointer(pointer, CURLOPT_OPENSOCKETDATA, context))
        check(CCurl_setCloseSocketFunction(pointer, ConnectionCallbacks.closeSocket))
        check(CCurl_setPointer(pointer, CURLOPT_CLOSESOCKETDATA, context))
        check(CCurl_setPrerequestFunction(pointer, TransferRecord.dispatch))
        check(CCurl_setPointer(pointer, CURLOPT_PREREQDATA, record))
    }

    private mutating func setMemory() {
        check(CCurl_setPointer(pointer, CURLOPT_PRIVATE, record))
        check(CCurl_setWriteFunction(pointer, TransferRecord.receive))
        check(CCurl_setPointer(pointer, CURLOPT_WRITEDATA, record))
        check(CCurl_setPointer(pointer, CURLOPT_ERRORBUFFER, record.pointee.errorText))
        check(CCurl_setList(pointer, CURLOPT_HTTPHEADER, headers.link()))
        // libcurl 7.88 keeps both buffers for as long as the connection lives: 80 KiB a handle by
        // default, and our bodies and answers are small. 16 KiB is the least for uploads.
        check(CCurl_setLong(pointer, CURLOPT_BUFFERSIZE, 2048))
        check(CCurl_setLong(pointer, CURLOPT_UPLOAD_BUFFERSIZE, 16_384))
    }

    private func long(_ field: CURLINFO) -> Int {
        TransferOptions.long(pointer, field)
    }

    private func check(_ code: CURLcode) { TransferOptions.check(code) }
}
