// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CCurl

/// One CURLM that carries exactly one HTTP/2 connection, and never a second: when libcurl wants
/// another, because the server ended the first, `wantedAnotherConnection` says so and the requests
/// concerned fail. `restart()` begins anew.
///
/// After each call the owner reads `takeTimer()`, `nextSocketChange()` and `nextEnd()` until there
/// is no more.
package struct MultiHandle: ~Copyable {
    let context: UnsafeMutablePointer<ConnectionContext>
    /// Made for the first request: libcurl takes some 30 KiB for it, and most places for
    /// connections never have one.
    private var pointer: UnsafeMutableRawPointer?
    private let streamsMax: Int

    /// - Parameters:
    ///   - streamsMax: no more requests than this are on the connection; libcurl obeys a lower
    ///     limit of the server's and lets the rest wait.
    ///   - unacknowledgedMax: the connection dies when the peer leaves what was sent
    ///     unacknowledged for so long (TCP_USER_TIMEOUT).
    package init(streamsMax: Int, unacknowledgedMax: Duration = .seconds(20)) {
        precondition(streamsMax > 0, "a connection has at least one stream")
        precondition(
            unacknowledgedMax > .zero,
            "the bound is above zero: zero is the system's own, which is long")
        CurlLibrary.initialise()
        self.streamsMax = streamsMax
        context = .allocate(capacity: 1)
        context.initialize(
            to: ConnectionContext(
                unacknowledgedMilliseconds: CInt(clamping: unacknowledgedMax.milliseconds)))
    }

    deinit {
        if let pointer { curl_multi_cleanup(pointer) }
        context.deinitialize(count: 1)
        context.deallocate()
    }

    /// Closes the connection. No easy handle may be added.
    package mutating func restart() {
        guard let pointer else { return }
        curl_multi_cleanup(pointer)
        self.pointer = nil
        let milliseconds = context.pointee.unacknowledgedMilliseconds
        context.pointee = ConnectionContext(unacknowledgedMilliseconds: milliseconds)
    }

    // MARK: Transfers

    /// Hands a prepared request over. It starts with the next call of `timeout()`.
    package mutating func add(_ easy: borrowing EasyHandle) {
        let pointer = pointer ?? Self.make(context, streamsMax)
        self.pointer = pointer
        let connection = easy.connection
        assert(connection == context, "a request is made and sent on one connection")
        check(curl_multi_add_handle(pointer, easy.pointer))
    }

    /// Takes a request out: after its end, or to give it up.
    package func remove(_ easy: borrowing EasyHandle) {
        check(curl_multi_remove_handle(pointer, easy.pointer))
    }

    package struct End {
        /// The position that the easy handle was made with.
        package let position: Int
        package let code: CurlCode
    }

    /// The end of a transfer. All ends are read before the first handle is removed, since removing
    /// searches those that are left.
    package func nextEnd() -> End? {
        var left: CInt = 0
        while let message = curl_multi_info_read(pointer, &left) {
            guard message.pointee.msg == CURLMSG_DONE else { continue }
            let record = TransferRecord.of(message.pointee.easy_handle)
            precondition(
                record.pointee.context == context,
                "a request ends on the connection that it was added to")
            return End(
                position: record.pointee.position, code: CurlCode(message.pointee.data.result))
        }
        return nil
    }

    // MARK: Driving it

    package func ready(_ descriptor: CInt, reads: Bool, writes: Bool) {
        guard let pointer else { return }
        var running: CInt = 0
        let bits = (reads ? CURL_CSELECT_IN : 0) | (writes ? CURL_CSELECT_OUT : 0)
        check(curl_multi_socket_action(pointer, descriptor, bits, &running))
    }

    /// The timer is due, or might be.
    package func timeout() {
        guard let pointer else { return }
        var running: CInt = 0
        check(curl_multi_socket_action(pointer, CURL_SOCKET_TIMEOUT, 0, &running))
    }

    /// Runs every transfer whether or not something is known to have happened. Costs a system call
    /// for each; the remedy against a lost wake-up inside libcurl.
    package func kick() {
        guard let pointer else { return }
        var running: CInt = 0
        check(curl_multi_perform(pointer, &running))
    }

    package enum Timer {
        case after(Duration)
        case never
    }

    /// What to do with the timer; nil to leave it.
    package func takeTimer() -> Timer? {
        guard let milliseconds = context.pointee.timer else { return nil }
        context.pointee.timer = nil
        return milliseconds < 0 ? .never : .after(.milliseconds(milliseconds))
    }

    package struct SocketChange {
        package let descriptor: CInt
        package let reads: Bool
        package let writes: Bool
        /// Whether the socket was watched before.
        package let isKnown: Bool
    }

    /// A socket whose wanted events have changed; with neither reading nor writing it is not to be
    /// watched any more. A socket that was closed is not mentioned: epoll has forgotten it.
    package func nextSocketChange() -> SocketChange? {
        for index in context.pointee.sockets.indices {
            let socket = context.pointee.sockets[index]
            guard socket.wanted != socket.told else { continue }
            context.pointee.sockets[index].told = socket.wanted
            return SocketChange(
                descriptor: socket.descriptor, reads: socket.wanted & CURL_POLL_IN != 0,
                writes: socket.wanted & CURL_POLL_OUT != 0, isKnown: socket.told != 0)
        }
        return nil
    }

    /// Whether a request has been given to the connection, so that TCP and TLS are up.
    package var isEstablished: Bool { context.pointee.isEstablished }

    package var wantedAnotherConnection: Bool { context.pointee.wantedAnother }

    private static func make(
        _ context: UnsafeMutablePointer<ConnectionContext>, _ streamsMax: Int
    ) -> UnsafeMutableRawPointer {
        guard let pointer = curl_multi_init() else { fatalError("out of memory for a CURLM") }
        let codes = [
            CCurl_multiSetLong(pointer, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX)),
            CCurl_multiSetLong(pointer, CURLMOPT_MAX_HOST_CONNECTIONS, 1),
            CCurl_multiSetLong(pointer, CURLMOPT_MAX_CONCURRENT_STREAMS, streamsMax),
            CCurl_multiSetSocketFunction(pointer, ConnectionCallbacks.watchSocket),
            CCurl_multiSetPointer(pointer, CURLMOPT_SOCKETDATA, context),
            CCurl_multiSetTimerFunction(pointer, ConnectionCallbacks.setTimer),
            CCurl_multiSetPointer(pointer, CURLMOPT_TIMERDATA, context),
        ]
        for code in codes { check(code) }
        return pointer
    }

    /// Any failure except for want of memory would be a wrong use of the handle.
    private static func check(_ code: CURLMcode) {
        precondition(code == CURLM_OK, "libcurl: \(String(cString: curl_multi_strerror(code)))")
    }

    private func check(_ code: CURLMcode) { Self.check(code) }
}

extension Duration {
    /// Rounded up, so that a deadline is never early and no positive one becomes libcurl's zero,
    /// "for ever".
    var milliseconds: Int {
        let (seconds, attoseconds) = components
        let perMillisecond: Int64 = 1_000_000_000_000_000
        return Int(seconds * 1000 + (attoseconds + perMillisecond - 1) / perMillisecond)
    }
}
