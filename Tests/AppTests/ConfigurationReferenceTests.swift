// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import Configuration
@testable import Worker

@Suite struct `Configuration reference` {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// `make docs` runs this test with `WRITE_DOCS`, and the page is rewritten.
    @Test func `the page is what the key table says`() throws {
        let page = Self.root.appendingPathComponent("docs/configuration.md")
        if ProcessInfo.processInfo.environment["WRITE_DOCS"] != nil {
            try Configuration.reference.write(to: page, atomically: true, encoding: .utf8)
        }
        let written = try String(contentsOf: page, encoding: .utf8)
        #expect(written == Configuration.reference, "run `make docs`")
    }

    @Test func `the example configuration lacks nothing but its secrets`() throws {
        let file = Self.root.appendingPathComponent("deploy/lamplighter.example.yaml")
        do {
            _ = try Configuration.load(
                file: file.path,
                environment: ["LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD": "secret"])
            Issue.record("the example's key file is not in the tree")
        } catch {
            #expect(error.problems.map(\.path) == ["apns.credentials.home.keyFile"], "\(error)")
        }
    }

    @Test func `the configuration's schema has every key with its default`() throws {
        let schema = try #require(
            JSONSerialization.jsonObject(with: Data(Configuration.jsonSchema.utf8))
                as? [String: Any])
        #expect(Self.child(schema, "delivery", "shutdownTimeout")?["default"] as? String == "25s")
        #expect(Self.child(schema, "delivery", "threads")?["default"] as? Int == 1)
        #expect(Self.child(schema, "delivery", "threads")?["maximum"] as? Int == 64)
        #expect(Self.child(schema, "intake", "allowKindWide")?["default"] as? Bool == false)
        for value in Configuration.shape.flatMap(\.values) where !value.form.isVariableOnly {
            var node: [String: Any]? = schema
            for name in value.path {
                node =
                    name.hasPrefix("<")
                    ? node?["additionalProperties"] as? [String: Any]
                    : node.flatMap { Self.child($0, name) }
            }
            #expect(node != nil, "\(value.path) is missing")
        }
    }

    @Test func `the configuration's schema refuses unknown keys and secrets`() throws {
        let schema = try #require(
            JSONSerialization.jsonObject(with: Data(Configuration.jsonSchema.utf8))
                as? [String: Any])
        #expect(schema["additionalProperties"] as? Bool == false)
        let credential =
            Self.child(schema, "apns", "credentials")?["additionalProperties"] as? [String: Any]
        let properties = credential?["properties"] as? [String: Any]
        #expect(properties?["key"] as? Bool == false)
        #expect(properties?["keyFile"] is [String: Any])
    }

    private static func child(_ node: [String: Any], _ names: String...) -> [String: Any]? {
        names.reduce(node as [String: Any]?) { node, name in
            (node?["properties"] as? [String: Any])?[name] as? [String: Any]
        }
    }
}
