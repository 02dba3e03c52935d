// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Foundation
import PushModel
import Testing

@testable import FleetKit

@Suite struct `The configuration of a fleet's workers` {
    private func configuration() -> WorkerConfiguration {
        var configuration = WorkerConfiguration(
            .underTraffic(prefix: "test", partitions: ["events": 3]), session: .seconds(6))
        configuration.bootstrap = "127.0.0.1:9092"
        configuration.holdMax = .seconds(2)
        configuration.delivery = [("shutdownTimeout", "5s")]
        configuration.credentials = [
            .init(
                name: "home", team: "ABCDE12345", keyID: "FGHIJ67890", keyFile: "AuthKey.p8",
                apps: ["com.example.Home"])
        ]
        configuration.endpoints = [.init(.production, host: "127.0.0.1", port: 8443)]
        return configuration
    }

    private func load(
        _ configuration: WorkerConfiguration, _ variables: [String: String] = [:]
    ) throws -> Configuration {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "configuration-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // The files that it names must be there.
        for name in ["ca.pem", "AuthKey.p8"] {
            try Data().write(to: folder.appending(path: name))
        }
        let file = folder.appending(path: "lamplighter.yaml")
        try configuration.text.write(to: file, atomically: true, encoding: .utf8)
        return try Configuration.load(file: file.path, environment: variables)
    }

    @Test func `a fleet's configuration is what a worker accepts, with what the fleet asks for`()
        throws
    {
        let loaded = try load(configuration())
        #expect(loaded.kafka.group == "test")
        #expect(loaded.delivery.holdMax == .seconds(2))
        #expect(loaded.delivery.shutdownTimeout == .seconds(5))
        #expect(loaded.kafka.properties["session.timeout.ms"] == Secret("6000"))
    }

    @Test func `a fleet's configuration is changed for one worker by the variables of its keys`()
        throws
    {
        let variable = WorkerConfiguration.variable(of: "delivery.holdMax")
        let loaded = try load(configuration(), [variable: "3s"])
        #expect(loaded.delivery.holdMax == .seconds(3))
    }

    @Test func `a fleet's configuration counts the partitions that are shared and asked for`() {
        let topics = configuration().topics
        #expect(topics.sharedPartitions == 3 + 16)
        #expect(topics.simulatorArgument.hasPrefix("test.events:3,test.registrations:16,"))
    }
}
