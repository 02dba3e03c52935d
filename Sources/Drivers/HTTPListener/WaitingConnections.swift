// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOCore

/// Connections that were accepted and not yet looked at. A crowd of strangers that connects at once costs the
/// listener's thread a long time; while it waits here, those who are open already are answered, and newcomers
/// of whom nothing bad is known go first.
struct WaitingConnections<Connection> {
    private struct Waiting {
        let connection: Connection
        let since: NIODeadline
    }

    private var trusted = CircularBuffer<Waiting>()
    private var doubtful = CircularBuffer<Waiting>()
    private let countMax: Int
    private let timeMax: Duration

    /// - Parameter timeMax: who waits longer is no longer looked at.
    init(countMax: Int, timeMax: Duration) {
        self.countMax = countMax
        self.timeMax = timeMax
    }

    var count: Int { trusted.count + doubtful.count }

    /// - Parameter isDoubtful: whether others from there have not shown who they are lately.
    mutating func append(_ connection: Connection, isDoubtful: Bool, now: NIODeadline) {
        let waiting = Waiting(connection: connection, since: now)
        if isDoubtful { doubtful.append(waiting) } else { trusted.append(waiting) }
    }

    /// The next to be looked at: the first of those who are trusted, or the last of the doubtful. Were it their
    /// first, all would wait until their clients have given up where more come than can be looked at.
    /// - Parameter mayBeDoubtful: is asked where nobody else waits.
    mutating func next(mayBeDoubtful: () -> Bool) -> Connection? {
        if let first = trusted.popFirst() { return first.connection }
        guard !doubtful.isEmpty, mayBeDoubtful() else { return nil }
        return doubtful.removeLast().connection
    }

    /// Takes out those that have waited too long, and the longest waiting where there are too many.
    mutating func givenUp(now: NIODeadline) -> [Connection] {
        var gone: [Connection] = []
        while let since = [trusted.first, doubtful.first].compactMap({ $0?.since }).min(),
            now - since > TimeAmount(timeMax) || count > countMax
        {
            let isTrusted = trusted.first?.since == since
            gone.append((isTrusted ? trusted.removeFirst() : doubtful.removeFirst()).connection)
        }
        return gone
    }

    mutating func removeAll() -> [Connection] {
        defer { (trusted, doubtful) = (CircularBuffer(), CircularBuffer()) }
        return trusted.map(\.connection) + doubtful.map(\.connection)
    }
}
