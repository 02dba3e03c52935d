// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Registrar
import RegistrarRules
import Testing

@Suite struct `The registrar page` {
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    @Test func `has the table of metrics`() throws {
        let file = Self.root.appending(path: "docs/registrar.md")
        let page = try String(contentsOf: file, encoding: .utf8)
        #expect(page.contains(RegistrarMetrics.reference), "\(RegistrarMetrics.reference)")
    }

    private struct Description: Decodable {
        struct Operation: Decodable {
            var responses: [String: Response]
        }
        struct Response: Decodable {}
        var openapi: String
        var paths: [String: [String: Entry]]

        /// An operation, or the parameters of a path.
        enum Entry: Decodable {
            case operation(Operation)
            case other

            init(from decoder: any Decoder) throws {
                self = (try? Operation(from: decoder)).map(Self.operation) ?? .other
            }
        }
    }

    private static func description() throws -> Description {
        try JSONDecoder().decode(Description.self, from: Data(OpenAPIDocument.bytes))
    }

    @Test func `the description has the paths and methods that there are`() throws {
        let description = try Self.description()
        #expect(description.openapi == "3.1.0")
        var described: Set<String> = []
        for (path, entries) in description.paths {
            let sample = path.replacing("{app}", with: "com.example.Home")
                .replacing("{environment}", with: "production")
                .replacing("{installation}", with: "6F1C").replacing("{handler}", with: "Garage")
            let methods = entries.compactMap { name, entry -> String? in
                if case .operation = entry { name.uppercased() } else { nil }
            }
            let route = try RegistrarRoute(path: sample)
            #expect(Set(methods) == Set(route.methods), "\(path)")
            described.insert(sample)
        }
        let base = "/v1/apps/com.example.Home/environments/production"
        let installation = "\(base)/installations/6F1C"
        let classes = RegistrationClass.allCases.map(\.rawValue)
        let all =
            ["/v1/openapi.json", "\(base)/batch", installation, "\(installation)/attest"]
            + ["\(installation)/attest/challenge"] + classes.map { "\(installation)/\($0)" }
            + classes.map { "\(installation)/\($0)/Garage" }
        #expect(described == Set(all))
    }

    @Test func `the description has every status`() throws {
        let description = try Self.description()
        var statuses: Set<String> = []
        for entries in description.paths.values {
            for case .operation(let operation) in entries.values {
                statuses.formUnion(operation.responses.keys)
            }
        }
        for problem in Problem.Name.allCases {
            #expect(statuses.contains("\(problem.status)"), "\(problem)")
        }
    }

    @Test func `a path has nothing but what is described`() {
        for path in ["", "/", "/v1", "/v1/apps/a/environments/production", "/v2/openapi.json"] {
            #expect(throws: RegistrarRoute.Failure.notFound) { try RegistrarRoute(path: path) }
        }
        let base = "/v1/apps/a/environments/production/installations"
        for path in ["\(base)/i/voip", "\(base)/i/controls/G/x", "\(base)//controls", "\(base)/i/"]
        {
            #expect(throws: (any Error).self) { try RegistrarRoute(path: path) }
        }
        #expect(throws: RegistrarRoute.Failure.self) {
            try RegistrarRoute(path: "\(base)/i/controls/%2F")
        }
    }
}
