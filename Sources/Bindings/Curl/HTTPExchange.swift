// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CCurl
internal import Glibc

/// One HTTP request and its answer, over a connection of its own unless an `HTTPConversation` performs
/// it. For what happens seldom: asking for a token, probing an endpoint. Redirects are not followed, and the process's environment has
/// no say in the proxy.
package struct HTTPExchange: Sendable, CustomStringConvertible, CustomReflectable {
    /// `https://…`, or `http://…` where the caller allows that. Without credentials.
    package var url: String
    /// Lower-case names; each line is sent as it stands.
    package var headers: [(name: String, value: String)] = []
    /// nil for GET without a body, and POST with one.
    package var method: String?
    package var body: [UInt8]?
    /// Sent as Basic authentication.
    package var credentials: (user: String, password: String)?
    /// PEM file of the roots to trust, instead of the system's.
    package var caFile: String?
    package var proxy: HTTPProxy?
    /// Where to connect instead of the URL's host and port.
    package var address: (host: String, port: UInt16)?
    /// Offers HTTP/2 by ALPN; a server without it is talked to in HTTP/1.1.
    package var offersHTTP2 = false
    /// The lower-case name of a header of the answer that the caller wants.
    package var keptHeader: String?
    /// The largest answer that is accepted; a larger one is a failure.
    package var answerBytesMax = 65_536
    package var connectTimeout = Duration.seconds(5)
    /// The limit for the whole exchange, name look-up and connect included.
    package var timeout = Duration.seconds(10)

    package init(url: String) { self.url = url }

    /// Shows nothing, since the URL may have a key in its query, and headers, body and credentials
    /// are secrets.
    package var description: String { "HTTP exchange" }
    package var customMirror: Mirror { Mirror(self, children: []) }

    package struct Answer: Sendable {
        package let status: UInt16
        package let body: [UInt8]
        package let isHTTP2: Bool
        /// The answer's `retry-after`, at most `retryAfterMax`; zero if it has none.
        package let retryAfter: Duration
        /// The value of `keptHeader`; nil if the answer has no such header.
        package let header: String?
    }

    /// The longest that an answer can have a caller wait. A wrong header, of a server or of a proxy before
    /// it, would silence the caller long after that was mended: a token issuer, a collector or a schema
    /// registry that is asked once a minute is spared enough.
    package static let retryAfterMax = Duration.seconds(60)

    /// Blocks, at most for `timeout` and a second.
    package func perform() throws(ExchangeFailure) -> Answer {
        try HTTPConversation().perform(self)
    }

    fileprivate func perform(
        with easy: UnsafeMutableRawPointer, _ receiver: AnswerReceiver
    ) throws(ExchangeFailure) -> Answer {
        precondition(answerBytesMax > 0, "an answer may have at least one byte")
        curl_easy_reset(easy)
        receiver.begin(bytesMax: answerBytesMax)
        let lines = SharedList(headers.map { "\($0.name): \($0.value)" })
        let connectTo = SharedList(
            address.map { [TransferOptions.connectTo(host: $0.host, port: $0.port)] } ?? [])
        set(easy, lines, connectTo, receiver)
        let code = withBody(of: easy) { curl_easy_perform(easy) }
        // The handle must not point to what ends here.
        defer {
            curl_easy_reset(easy)
            withExtendedLifetime((lines, connectTo)) {}
        }
        if receiver.hasOverflowed {
            throw ExchangeFailure(
                kind: .tooLarge, text: "the answer has more than \(answerBytesMax) bytes")
        }
        guard code == CURLE_OK else {
            throw ExchangeFailure(
                code, easy, receiver.errorText, isTunnelled: proxy != nil,
                wasOpen: receiver.wasOpen)
        }
        var retryAfter: curl_off_t = 0
        TransferOptions.check(CCurl_getOffset(easy, CURLINFO_RETRY_AFTER, &retryAfter))
        return Answer(
            status: UInt16(clamping: TransferOptions.long(easy, CURLINFO_RESPONSE_CODE)),
            body: receiver.bytes,
            isHTTP2: TransferOptions.long(easy, CURLINFO_HTTP_VERSION) == CURL_HTTP_VERSION_2_0,
            retryAfter: min(.seconds(max(retryAfter, 0)), Self.retryAfterMax),
            header: keptHeader.flatMap { Self.header($0, of: easy) })
    }

    private static func header(_ name: String, of easy: UnsafeMutableRawPointer) -> String? {
        var header: UnsafeMutablePointer<curl_header>?
        // 0 is the first of its name; -1 is the last request that was made.
        guard curl_easy_header(easy, name, 0, UInt32(CURLH_HEADER), -1, &header) == CURLHE_OK,
            let value = header?.pointee.value
        else { return nil }
        return String(cString: value)
    }

    private func set(
        _ easy: UnsafeMutableRawPointer, _ lines: SharedList, _ connectTo: SharedList,
        _ receiver: AnswerReceiver
    ) {
        let check = TransferOptions.check
        check(CCurl_setString(easy, CURLOPT_URL, url))
        check(CCurl_setString(easy, CURLOPT_PROTOCOLS_STR, "https,http"))
        let version = offersHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
        check(CCurl_setLong(easy, CURLOPT_HTTP_VERSION, Int(version)))
        if let method { check(CCurl_setString(easy, CURLOPT_CUSTOMREQUEST, method)) }
        check(CCurl_setList(easy, CURLOPT_HTTPHEADER, lines.first))
        check(CCurl_setList(easy, CURLOPT_CONNECT_TO, connectTo.first))
        if let credentials {
            // Basic unless another scheme is asked for.
            check(CCurl_setString(easy, CURLOPT_USERNAME, credentials.user))
            check(CCurl_setString(easy, CURLOPT_PASSWORD, credentials.password))
        }
        TransferOptions.secure(easy, caFile: caFile)
        TransferOptions.tunnel(easy, through: proxy)
        TransferOptions.limit(easy, connect: connectTimeout, transfer: timeout)
        check(CCurl_setWriteFunction(easy, AnswerReceiver.receive))
        check(
            CCurl_setPointer(
                easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(receiver).toOpaque()))
        check(CCurl_setPointer(easy, CURLOPT_ERRORBUFFER, receiver.errorBuffer))
        check(CCurl_setCloseSocketFunction(easy, AnswerReceiver.closeSocket))
        check(
            CCurl_setPointer(
                easy, CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(receiver).toOpaque()))
    }

    /// Performs the request while the body stays where libcurl reads it.
    private func withBody(
        of easy: UnsafeMutableRawPointer, _ perform: () -> CURLcode
    ) -> CURLcode {
        guard let body else { return perform() }
        return body.withUnsafeBytes { bytes in
            TransferOptions.check(CCurl_setLong(easy, CURLOPT_POST, 1))
            TransferOptions.check(CCurl_setLong(easy, CURLOPT_POSTFIELDSIZE, bytes.count))
            // libcurl takes a null pointer for "no POST"; any other will do for an empty body.
            let start = bytes.baseAddress ?? UnsafeRawPointer(easy)
            TransferOptions.check(CCurl_setPointer(easy, CURLOPT_POSTFIELDS, start))
            return perform()
        }
    }
}

/// Performs exchanges one after the other, and keeps the connection to each server open for the next.
/// It belongs to one thread at a time.
package final class HTTPConversation {
    private let easy: UnsafeMutableRawPointer
    private let receiver = AnswerReceiver()

    package init() {
        CurlLibrary.initialise()
        guard let easy = curl_easy_init() else { fatalError("out of memory for a CURL") }
        self.easy = easy
    }

    /// The handle goes before what it points to.
    deinit { curl_easy_cleanup(easy) }

    /// Blocks, at most for the exchange's `timeout` and a second.
    package func perform(_ exchange: HTTPExchange) throws(ExchangeFailure) -> HTTPExchange.Answer {
        try exchange.perform(with: easy, receiver)
    }
}

/// What libcurl's callbacks keep of an exchange.
///
/// SAFETY: held by the conversation until the handle is gone; the callbacks run inside
/// curl_easy_perform, and that of a socket in curl_easy_cleanup too.
private final class AnswerReceiver {
    private(set) var bytes: [UInt8] = []
    private(set) var hasOverflowed = false
    /// Whether a socket that has been closed was connected. libcurl 8.14 has no figure that says so
    /// before there is a TLS session; the local port, which 7.88 has, is -1 there.
    private(set) var wasOpen = false
    let errorBuffer: UnsafeMutablePointer<CChar>
    private var bytesMax = 0

    init() {
        errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit { errorBuffer.deallocate() }

    var errorText: String { String(cString: errorBuffer) }

    func begin(bytesMax: Int) {
        self.bytesMax = bytesMax
        bytes = []
        hasOverflowed = false
        wasOpen = false
        errorBuffer.pointee = 0
    }

    static let receive: curl_write_callback = { bytes, size, count, user in
        let receiver = Unmanaged<AnswerReceiver>.fromOpaque(user!).takeUnretainedValue()
        let part = UnsafeRawBufferPointer(start: bytes, count: size * count)
        guard receiver.bytes.count + part.count <= receiver.bytesMax else {
            receiver.hasOverflowed = true
            // Any other number than the part's ends the transfer.
            return part.count + 1
        }
        receiver.bytes.append(contentsOf: part)
        return part.count
    }

    static let closeSocket: curl_closesocket_callback = { user, descriptor in
        let receiver = Unmanaged<AnswerReceiver>.fromOpaque(user!).takeUnretainedValue()
        var peer = sockaddr()
        var size = socklen_t(MemoryLayout<sockaddr>.size)
        if getpeername(descriptor, &peer, &size) == 0 { receiver.wasOpen = true }
        return close(descriptor)
    }
}

/// A curl_slist of copied lines.
private final class SharedList {
    private(set) var first: UnsafeMutablePointer<curl_slist>?

    init(_ lines: [String]) {
        for line in lines {
            guard let longer = curl_slist_append(first, line) else {
                fatalError("out of memory for a header")
            }
            first = longer
        }
    }

    deinit { curl_slist_free_all(first) }
}
