// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Synchronization

/// Host names to addresses, IPv4 and IPv6, asked of the system anew each time and never on the
/// thread that wants to know. The caller bounds the lookups in flight: each has a thread.
package final class Resolver: Sendable {
    package struct Answer: Sendable {
        /// The tag that `resolve` was given.
        package let tag: UInt64
        package let result: Result<[SocketAddress], ResolverError>
    }

    /// Looks up all addresses of a host, with the port. May block.
    package typealias LookUp =
        @Sendable (_ host: String, _ port: UInt16) throws(ResolverError) -> [SocketAddress]

    private let answers = Mutex<[Answer]>([])
    private let waker: Waker
    private let lookUp: LookUp

    /// - Parameter waker: of the thread that asks and will `collect()`.
    package init(waker: Waker, lookUp: @escaping LookUp = Resolver.system) {
        self.waker = waker
        self.lookUp = lookUp
    }

    /// The system's resolver.
    package static let system: LookUp = { host, port throws(ResolverError) in
        try look(host: host, port: port, flags: AI_ADDRCONFIG)
    }

    /// Looks a host up. A numeric host is answered at once, before this returns; a name later.
    /// Either answer signals the waker.
    package func resolve(host: String, port: UInt16, tag: UInt64) {
        if let known = try? Self.look(host: host, port: port, flags: AI_NUMERICHOST) {
            return answered(Answer(tag: tag, result: .success(known)))
        }
        do {
            try NamedThread.detach(name: "resolver") { [lookUp] in
                let result = Result { () throws(ResolverError) in try lookUp(host, port) }
                self.answered(Answer(tag: tag, result: result))
            }
        } catch {
            let failure = ResolverError(host: host, reason: error.description)
            answered(Answer(tag: tag, result: .failure(failure)))
        }
    }

    /// The answers since the last call, in the order they came.
    package func collect() -> [Answer] {
        answers.withLock { answers in
            defer { answers.removeAll() }
            return answers
        }
    }

    private func answered(_ answer: Answer) {
        answers.withLock { $0.append(answer) }
        waker.signal()
    }

    private static func look(
        host: String, port: UInt16, flags: CInt
    ) throws(ResolverError) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        hints.ai_flags = flags | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else {
            throw ResolverError(host: host, reason: String(cString: gai_strerror(code)))
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next {
            addresses.append(
                SocketAddress(copying: entry.pointee.ai_addr, length: entry.pointee.ai_addrlen))
            next = entry.pointee.ai_next
        }
        return addresses
    }
}

/// A host name that could not be turned into an address.
package struct ResolverError: Error, Hashable, Sendable, CustomStringConvertible {
    package let host: String
    /// The resolver's words.
    package let reason: String

    package var description: String { "cannot resolve \(host): \(reason)" }
}
