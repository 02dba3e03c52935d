// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CCurl
internal import Glibc

/// What libcurl's callbacks write about one connection and the multi handle's owner reads.
///
/// SAFETY: owned by the `MultiHandle` and freed after its CURLM, so it outlives the connection and
/// every socket of it. All callbacks run on the thread that calls into the multi handle.
struct ConnectionContext {
    struct WatchedSocket {
        let descriptor: CInt
        /// Bits of CURL_POLL_IN and CURL_POLL_OUT.
        var wanted: Int32 = 0
        /// The bits of `wanted` that the owner was last told.
        var told: Int32 = 0
    }

    var sockets: [WatchedSocket] = []
    /// The time that the timer callback gave last, in milliseconds, until the owner takes it.
    var timer: Int?
    /// Whether a request has been given to the connection, so that it is up.
    var isEstablished = false
    /// Whether libcurl wanted a second connection and did not get it.
    var wantedAnother = false
    let unacknowledgedMilliseconds: CInt

    init(unacknowledgedMilliseconds: CInt) {
        self.unacknowledgedMilliseconds = unacknowledgedMilliseconds
    }

    mutating func watch(_ descriptor: CInt, for bits: Int32) {
        if let index = sockets.firstIndex(where: { $0.descriptor == descriptor }) {
            sockets[index].wanted = bits
        } else {
            sockets.append(WatchedSocket(descriptor: descriptor, wanted: bits))
        }
    }

    mutating func forget(_ descriptor: CInt) {
        sockets.removeAll { $0.descriptor == descriptor }
    }
}

/// libcurl's callbacks that concern a connection.
enum ConnectionCallbacks {
    private typealias Context = UnsafeMutablePointer<ConnectionContext>

    static let watchSocket: curl_socket_callback = { _, descriptor, what, user, _ in
        context(user).pointee.watch(descriptor, for: what == CURL_POLL_REMOVE ? 0 : what)
        return 0
    }

    static let setTimer: curl_multi_timer_callback = { _, milliseconds, user in
        context(user).pointee.timer = milliseconds
        return 0
    }

    /// Opens the sockets of the first connect, one for each address that is tried, and none after:
    /// libcurl would put everything in flight on a new connection on which APNs has not yet
    /// accepted the provider token.
    static let openSocket: curl_opensocket_callback = { user, _, address in
        let context = context(user)
        if context.pointee.isEstablished {
            context.pointee.wantedAnother = true
            return CURL_SOCKET_BAD
        }
        let type = address!.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address!.pointee.family, type, address!.pointee.protocol)
        guard descriptor >= 0 else { return CURL_SOCKET_BAD }
        // The number may have belonged to a socket that epoll has forgotten since.
        context.pointee.forget(descriptor)
        // Best effort: without it a dead peer is noticed later, by the requests' deadlines.
        var milliseconds = context.pointee.unacknowledgedMilliseconds
        setsockopt(
            descriptor, CInt(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds,
            socklen_t(MemoryLayout<CInt>.size))
        return descriptor
    }

    static let closeSocket: curl_closesocket_callback = { user, descriptor in
        context(user).pointee.forget(descriptor)
        return close(descriptor)
    }

    private static func context(_ user: UnsafeMutableRawPointer?) -> Context {
        user!.assumingMemoryBound(to: ConnectionContext.self)
    }
}
