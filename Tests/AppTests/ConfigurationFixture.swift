// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

@testable internal import Configuration
@testable import Worker

/// The smallest valid configuration, given by variables alone.
let leastEnvironment = [
    "LAMPLIGHTER_KAFKA_BOOTSTRAP": "kafka:9092",
    "LAMPLIGHTER_APNS_CREDENTIALS_HOME_TEAM": "ABCDE12345",
    "LAMPLIGHTER_APNS_CREDENTIALS_HOME_KEYID": "FGHIJ67890",
    "LAMPLIGHTER_APNS_CREDENTIALS_HOME_KEY": "-----BEGIN PRIVATE KEY-----",
    "LAMPLIGHTER_APNS_CREDENTIALS_HOME_APPS": "com.example.Home",
]

/// The problems of a file together with the smallest environment; empty if it is valid.
func problems(
    in yaml: String = "", _ variables: [String: String] = [:], without missing: [String] = []
) -> [String] {
    var environment = leastEnvironment.merging(variables) { $1 }
    for name in missing { environment["LAMPLIGHTER_" + name] = nil }
    do {
        _ = try Configuration.decode(yaml: yaml, environment: environment)
        return []
    } catch {
        return error.problems.map(\.description)
    }
}

func configuration(
    _ yaml: String, _ variables: [String: String] = [:]
) throws -> Configuration {
    try Configuration.decode(
        yaml: yaml, environment: leastEnvironment.merging(variables) { $1 })
}
