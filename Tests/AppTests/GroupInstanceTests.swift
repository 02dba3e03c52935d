// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing
import Worker

@testable import Configuration

/// `kafka.groupInstanceID: auto`.
@Suite struct `A worker's group instance` {
    private static func name(_ text: String?, on host: String) throws -> String? {
        try Configuration.decode(
            yaml: text.map { "kafka: {groupInstanceID: \($0)}" } ?? "",
            environment: leastEnvironment, hostName: host
        ).kafka.groupInstanceID
    }

    private static func problems(on host: String) -> [String] {
        do throws(InvalidConfiguration) {
            _ = try Configuration.decode(
                yaml: "kafka: {groupInstanceID: auto}", environment: leastEnvironment,
                hostName: host)
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test func `it has a name only where it is given one, and the host's where that is auto`()
        throws
    {
        #expect(try Self.name(nil, on: "push-1.example.com") == nil)
        #expect(try Self.name("worker-1", on: "push-1") == "worker-1")
        #expect(try Self.name("auto", on: "push-1.example.com") == "push-1.example.com")
    }

    @Test func `a name that hosts have by default is refused`() {
        let remedy = "; name the worker here as no other worker is, or leave the key out"
        for host in ["", "localhost", "localhost.localdomain"] {
            #expect(
                Self.problems(on: host) == [
                    "kafka.groupInstanceID: is auto, and this host is called '\(host)', as others are"
                        + remedy
                ])
        }
        #expect(
            Self.problems(on: "büro") == [
                "kafka.groupInstanceID: is auto, and this host is called 'büro', which Kafka does not take"
                    + remedy
            ])
    }
}
