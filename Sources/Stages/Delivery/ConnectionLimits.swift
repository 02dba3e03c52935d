// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The times and bounds that a connection obeys.
package struct ConnectionLimits: Sendable {
    /// From the question to the resolver to the server's first SETTINGS.
    package var connectTimeout: Duration = .seconds(10)
    /// From handing a request to the connection to the end of its answer.
    package var requestTimeout: Duration = .seconds(15)
    /// So many requests in a row without an answer between them, and the connection is dead.
    package var timeoutsMax = 3
    /// Doubles from here after each failed connect, with full jitter, up to `reconnectMax`.
    package var reconnectMin: Duration = .seconds(1)
    package var reconnectMax: Duration = .seconds(60)
    /// Never more streams than this on one connection, whatever the server announces.
    package var streamsMax: Int = 1000
    /// A connection this silent is asked by PING before it is used again.
    package var pingAfterSilence: Duration = .seconds(60)
    package var pingTimeout: Duration = .seconds(5)
    /// A connection this silent is asked by PING though nothing is to be sent: Apple advises one an
    /// hour on a connection that is mostly idle.
    package var pingWhenIdle: Duration = .seconds(3600)
    /// A connection is replaced after this long, plus or minus a tenth.
    package var ageMax: Duration = .seconds(24 * 3600)
    /// A push that no connection takes waits with delivery for so long.
    package var waitMax: Duration = .seconds(5)

    package init() {}
}
