// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The schema registry that schemas are fetched from.
package struct RegistrySettings: Sendable {
    /// The base URLs of its instances, without credentials. They are tried in turn.
    package var urls: [String]
    /// Sent as Basic authentication; nil for none.
    package var user: String?
    package var password: Secret?
    /// The PEM file of trusted roots; nil for the system's.
    package var caFile: String?
    /// The limit for one request, name look-up and connect included.
    package var requestTimeMax = Duration.seconds(10)
    /// The limit for a schema with all that it refers to.
    package var schemaTimeMax = Duration.seconds(30)
    /// How long the registry is believed that it has no schema of a number.
    package var unknownLife = Duration.seconds(60)

    package init(urls: [String]) {
        precondition(!urls.isEmpty, "a registry has at least one URL")
        self.urls = urls
    }

    /// How many schemas are kept, and how much memory they take at most. What was given away is
    /// fetched again when a record needs it.
    package var schemasMax = 1000
    package var schemaBytesMax = 64 << 20
    /// How many numbers are remembered that the registry does not have, or whose schema cannot be used.
    package var refusedMax = 10_000
    /// How many schemas are waited for at a time: more than a worker has partitions, each of which
    /// waits for one.
    package var wantedMax = 10_000
    /// How long a schema is waited for after somebody has last asked for it.
    package var wantedLife = Duration.seconds(60)
    /// How many schemas are asked for at a time; at least 2, since one fetcher takes none that has failed.
    package var fetchersMax = 4
}
