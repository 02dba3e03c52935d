// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The times and bounds that a connection obeys.
package struct ConnectionLimits: Sendable {
    /// The longest time from the name look-up to the server's first SETTINGS.
    package var connectTimeout: Duration = .seconds(10)
    /// The longest time from handing a request to the connection to the end of its answer.
    package var requestTimeout: Duration = .seconds(15)
    /// After this many request timeouts in a row, without an answer in between, the connection is
    /// dead.
    package var timeoutsMax = 3
    /// The delay after the first failed connect. It doubles with each further one, with jitter, up
    /// to `reconnectMax`.
    package var reconnectMin: Duration = .seconds(1)
    package var reconnectMax: Duration = .seconds(60)
    /// The most streams on one connection, whatever the server announces.
    package var streamsMax: Int = 1000
    /// A connection that has been silent for this long is checked by PING before it is used again.
    package var pingAfterSilence: Duration = .seconds(60)
    package var pingTimeout: Duration = .seconds(5)
    /// A connection that has been silent for this long is checked by PING even if there is nothing
    /// to send: Apple advises one an hour on a connection that is mostly idle.
    package var pingWhenIdle: Duration = .seconds(3600)
    /// A connection is replaced after this long, plus or minus a tenth.
    package var ageMax: Duration = .seconds(24 * 3600)
    /// How long a push that no connection takes waits in delivery.
    package var waitMax: Duration = .seconds(5)

    package init() {}
}
