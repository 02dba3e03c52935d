// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Misbehaviour on demand. Each thread carries a command out between two events, so that it holds
/// for every connection the thread has, in the order given.
package enum SimulatorCommand: Hashable, Sendable {
    /// GOAWAY on every open connection, with `{"reason":"…"}` as debug data or none. The last
    /// stream named lies `streamsBelow` streams under the highest seen: unanswered streams above
    /// it were not processed.
    case goAway(reason: String?, streamsBelow: Int)
    /// Cuts every connection with a TCP reset.
    case resetConnections
    /// While true, requests are read and neither answered nor logged; they stay unanswered.
    case stall(Bool)
    /// Announces another stream limit and enforces it at once, also to connections to come.
    case streamLimit(Int)
    /// Refuses the next so many streams with REFUSED_STREAM; each thread counts its own.
    case refuseStreams(Int)
    case delay(Duration)
    /// Replaces the scripted answers.
    case rules([ScriptedRule])
    /// Says GOAWAY, flushes what is decided and ends the thread.
    case stop
}
