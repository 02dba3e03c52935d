// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import LinuxIO
internal import PushModel

/// A connection of a pool, or room for one: a multi handle and the easy handles that it has needed so
/// far, which the next connection here reuses. `machine` decides what may happen when.
struct CurlConnection: PooledConnection, ~Copyable {
    let pool: Int
    var health = ConnectionHealth()
    var machine: CurlConnectionMachine
    var multi: MultiHandle
    /// When libcurl must be called even if no socket event arrives.
    private(set) var timerAt = MonotonicTime.distantFuture
    /// When the connection last had an event, or was last kicked for lack of one.
    var progressAt = MonotonicTime(nanoseconds: 0)
    var shownTokens = ShownProviderTokens()
    /// Whether APNs has accepted the provider token in an answer on this connection.
    var isAuthenticated = false
    /// Whether `ConnectionCounts.connects` includes this connection.
    var wasCounted = false
    /// Ends of requests that libcurl has reported and that are not handled yet.
    private(set) var ends: [MultiHandle.End] = []

    private let template: RequestTemplate
    private let handles: UnsafeMutablePointer<EasyHandle>
    private var made = 0
    private var idle: [Int] = []
    private var isBusy: [Bool] = []

    init(pool: Int, settings: PoolSettings) {
        self.pool = pool
        machine = CurlConnectionMachine(
            limits: settings.limits, at: MonotonicTime(nanoseconds: 0), jitter: 0)
        machine.closed()
        multi = MultiHandle(streamsMax: CurlConnectionMachine.requestsMax)
        var template = RequestTemplate(
            url: "https://\(Self.bracketed(settings.serverName))/", host: settings.host,
            port: settings.port, caFile: settings.caFile,
            connectTimeout: settings.limits.connectTimeout,
            requestTimeout: settings.limits.requestTimeout)
        if let proxy = settings.proxy {
            template.proxy = HTTPProxy(proxy.text)
            // The message leaves the proxy's URL out, because it may hold a password.
            precondition(
                template.proxy != nil, "the proxy is http://host:port, as was checked before")
        }
        self.template = template
        handles = .allocate(capacity: CurlConnectionMachine.requestsMax)
    }

    deinit {
        for position in 0..<made where isBusy[position] { multi.remove(handles[position]) }
        handles.deinitialize(count: made)
        handles.deallocate()
    }

    /// The proxy's `host:port`; nil without a proxy.
    var proxyAddress: String? { template.proxy?.address }

    var isVacant: Bool { machine.phase == .closed }

    var isWanted: Bool { machine.isWanted }

    /// libcurl chooses it.
    var address: SocketAddress? { nil }

    var isServing: Bool { machine.phase == .open }

    var capacity: Int { machine.capacity }

    var inFlightCount: Int { machine.requestsInFlight }

    func takes(bodyBytes: Int, isKeptBack: Bool) -> Bool {
        machine.takes(bodyBytes: bodyBytes, isKeptBack: isKeptBack)
    }

    mutating func retire() { machine.retired() }

    /// Prepares it for a new connection and discards the state of the previous one.
    mutating func begin(limits: ConnectionLimits, at now: MonotonicTime, jitter: Double) {
        precondition(
            isVacant && ends.isEmpty,
            "a connection begins in a vacant place, without ends of the one before")
        machine = CurlConnectionMachine(limits: limits, at: now, jitter: jitter)
        progressAt = now
        shownTokens = ShownProviderTokens()
        isAuthenticated = false
        wasCounted = false
    }

    /// Closes the connection. Every request must have been released.
    mutating func close() {
        precondition(
            !isBusy.contains(true),
            "a connection is closed only when no request is left in libcurl")
        assert(idle.count == made, "every request that is not in libcurl is idle")
        multi.restart()
        machine.closed()
        timerAt = .distantFuture
    }

    // MARK: Requests

    /// Takes an idle easy handle, or makes one. The machine's limit guarantees that one is left.
    mutating func claim() -> Int {
        let position: Int
        if let free = idle.popLast() {
            position = free
            assert(!isBusy[position], "an idle request is not in libcurl")
        } else {
            position = made
            precondition(
                made < CurlConnectionMachine.requestsMax,
                "a connection has at most requestsMax requests")
            (handles + position).initialize(
                to: EasyHandle(position: position, template: template, on: multi))
            made += 1
            isBusy.append(false)
        }
        isBusy[position] = true
        return position
    }

    subscript(position: Int) -> UnsafeMutablePointer<EasyHandle> { handles + position }

    /// Removes a request from libcurl, whether or not it has ended.
    mutating func release(_ position: Int) {
        precondition(isBusy[position], "a request is taken out of libcurl once")
        multi.remove(handles[position])
        isBusy[position] = false
        idle.append(position)
    }

    /// The positions of the requests that libcurl still holds.
    var busy: [Int] { isBusy.indices.filter { isBusy[$0] } }

    // MARK: Driving libcurl

    /// Calls libcurl if its timer is due.
    mutating func keepTimer(at now: MonotonicTime) {
        guard timerAt <= now else { return }
        timerAt = .distantFuture
        multi.timeout()
        collectEnds(at: now)
    }

    /// Reads the timer and the ended requests that the last call into libcurl produced.
    mutating func collectEnds(at now: MonotonicTime) {
        switch multi.takeTimer() {
        case .after(let delay): timerAt = now + delay
        case .never: timerAt = .distantFuture
        case nil: break
        }
        while let end = multi.nextEnd() {
            precondition(isBusy[end.position], "libcurl ends only requests that it was given")
            ends.append(end)
        }
    }

    mutating func takeEnds() -> [MultiHandle.End] {
        defer { ends.removeAll(keepingCapacity: true) }
        return ends
    }

    /// A host name as a URL needs it: an IPv6 address gets brackets.
    static func bracketed(_ name: String) -> String {
        name.contains(":") ? "[\(name)]" : name
    }
}
