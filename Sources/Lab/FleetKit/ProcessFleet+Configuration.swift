// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import PushModel

extension ProcessFleet {
    /// The path of the workers' configuration.
    package var configurationFile: String { path("lamplighter.yaml") }

    /// Writes the workers' configuration.
    /// - Parameter endpoints: the APNs endpoints; nil for this fleet's simulator.
    package func writeConfiguration(endpoints: [WorkerConfiguration.Endpoint]? = nil) throws {
        var configuration = plan.configuration
        configuration.bootstrap = bootstrap
        let addresses = addresses
        configuration.endpoints =
            endpoints ?? [.init(.production, host: addresses.host, port: addresses.port)]
        if let token = configuration.operatorToken {
            let file = path(WorkerConfiguration.operatorTokenFile)
            try token.write(toFile: file, atomically: true, encoding: .utf8)
        }
        try configuration.text.write(
            toFile: configurationFile, atomically: true, encoding: .utf8)
    }
}
