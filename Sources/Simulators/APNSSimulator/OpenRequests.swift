// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Nghttp2

/// Holds one connection's requests from their headers to the end of their streams. It enforces the
/// stream limit, judges headers as they arrive, and lists complete requests.
final class OpenRequests: ServerRequests {
    /// The requests, indexed by the numbers that the session passes back.
    private(set) var requests: [PendingRequest] = []
    private var vacant: [Int] = []
    private var opened: UInt64 = 0
    private(set) var openCount = 0
    /// The complete requests that are not handled yet, in the order of their ends.
    private(set) var ended: [Int] = []

    /// The most open streams; further ones are refused.
    var streamLimit: Int
    private(set) var credential: ConnectionCredential
    private let judge: RequestJudge
    let turn: ServingTurn
    private let keepsHeaders: Bool
    /// When the last request came; before the first, when the connection was accepted.
    private var heardAt: Int64

    init(
        streamLimit: Int, credential: ConnectionCredential, judge: RequestJudge,
        turn: ServingTurn, keepsHeaders: Bool
    ) {
        self.streamLimit = streamLimit
        self.credential = credential
        self.judge = judge
        self.turn = turn
        self.keepsHeaders = keepsHeaders
        heardAt = turn.now
    }

    /// The session does not report streams that end with their connection.
    deinit { turn.counts.requestsOpen -= openCount }

    func forgetEnded() { ended.removeAll(keepingCapacity: true) }

    /// Whether the place still holds the request with this serial number, and its stream is open.
    func isOpen(_ request: Int, serial: UInt64) -> Bool {
        requests[request].isOpen && requests[request].serial == serial
    }

    // MARK: ServerRequests

    func requestBegan(stream: Int32) -> Int? {
        guard openCount < streamLimit, turn.mayOpenStream() else {
            turn.counts.streamsRefused += 1
            return nil
        }
        openCount += 1
        turn.counts.requestsOpen += 1
        opened += 1
        let request = vacant.popLast() ?? requests.count
        if request == requests.count { requests.append(PendingRequest()) }
        requests[request].begin(stream: stream, serial: opened)
        return request
    }

    func headersReceived(_ request: Int, _ fields: borrowing HeaderBlock) {
        judge.judgeHeaders(
            fields, of: &requests[request], credential: &credential, now: turn.wallSeconds)
        if turn.idleMax > 0 && turn.now - heardAt > turn.idleMax {
            requests[request].refusal = .idleTimeout
        }
        heardAt = turn.now
        if requests[request].apnsID.isEmpty {
            requests[request].apnsID.append(contentsOf: turn.newUUID())
        }
        guard keepsHeaders else { return }
        for index in 0..<fields.count {
            requests[request].headers.append(
                RecordedRequest.Header(
                    name: String(decoding: fields.name(index), as: UTF8.self),
                    value: String(decoding: fields.value(index), as: UTF8.self)))
        }
    }

    func bodyReceived(_ request: Int, _ bytes: UnsafeRawBufferPointer) {
        requests[request].append(bytes)
    }

    func requestEnded(_ request: Int) {
        assert(requests[request].isOpen, "a request ends while it is open")
        ended.append(request)
    }

    func requestClosed(_ request: Int, errorCode: UInt32) {
        assert(requests[request].isOpen, "a request is closed once")
        requests[request].isOpen = false
        openCount -= 1
        assert(
            openCount == requests.count - vacant.count - 1,
            "each place but the one being closed is vacant or has an open request")
        turn.counts.requestsOpen -= 1
        vacant.append(request)
        // A stream may be reset before its complete request is handled.
        if !ended.isEmpty { ended.removeAll { $0 == request } }
    }
}
