// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension SimulatorCounts {
    /// The counts as one line of JSON, under the names of the properties.
    package var json: String {
        let pairs: [(String, Int)] = [
            ("accepted", accepted), ("rejected", rejected), ("unanswered", unanswered),
            ("streamsRefused", streamsRefused), ("requestsOpen", requestsOpen),
            ("connectionsOpened", connectionsOpened),
            ("connectionsOpen", connectionsOpen),
            ("connectionsTurnedAway", connectionsTurnedAway),
            ("tokensUnremembered", tokensUnremembered),
        ]
        return "{" + pairs.map { #""\#($0)":\#($1)"# }.joined(separator: ",") + "}"
    }

    /// Whether any request has come.
    var hasRequests: Bool { accepted + rejected + unanswered + streamsRefused > 0 }
}
