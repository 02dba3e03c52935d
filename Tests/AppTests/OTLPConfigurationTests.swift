// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
internal import Foundation
internal import Intake
internal import OTLPExporter
internal import Pipeline
internal import PushModel
internal import Telemetry
internal import Testing

@testable internal import Worker

@Suite struct `The configuration of OTLP` {
    private func file(_ text: String) throws -> String {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "headers-\(UUID().uuidString)")
        try text.write(to: file, atomically: true, encoding: .utf8)
        return file.path
    }

    @Test func `without an endpoint nothing is exported or traced`() throws {
        let configuration = try configuration("")
        #expect(configuration.collectorSettings(worker: "w", version: "1") == nil)
        let plan = WorkerPlan(configuration)
        #expect(plan.pipeline.tracing == nil && !plan.pipeline.events.readsTraceparent)
    }

    @Test func `the resource says who exports, and what the operator adds`() throws {
        let configuration = try configuration(
            """
            kafka: {group: home}
            otlp:
              endpoint: https://collector.example.com:4318/otlp
              interval: 30s
              sampling: 0.25
              attributes:
                deployment.environment.name: staging
                service.name: pushes
            """)
        let settings = try #require(
            configuration.collectorSettings(worker: "pod-1", version: "1.2.3"))
        #expect(settings.url(of: .metrics) == "https://collector.example.com:4318/otlp/v1/metrics")
        #expect(settings.interval == .seconds(30))
        #expect(
            settings.resource.attributes == [
                Span.Attribute("deployment.environment.name", .text("staging")),
                Span.Attribute("messaging.consumer.group.name", .text("home")),
                Span.Attribute("service.instance.id", .text("pod-1")),
                Span.Attribute("service.name", .text("pushes")),
                Span.Attribute("service.version", .text("1.2.3")),
            ])
        let plan = WorkerPlan(configuration)
        #expect(plan.pipeline.tracing?.ratio == 0.25 && plan.pipeline.events.readsTraceparent)
        let name = [0, 1].withUnsafeBufferPointer { plan.pipeline.tracing?.tokenName($0) }
        // The first 16 digits of SHA-256(00 01), as the commands have them.
        #expect(name == "b413f47d13ee2fe6")
    }

    @Test(arguments: [
        "collector:4318", "grpc://collector:4317", "http://user:secret@collector",
        "https://collector/?key=secret", "https://", "http://a b",
    ])
    func `an endpoint of another form is refused`(endpoint: String) {
        let found = problems(in: "otlp: {endpoint: \"\(endpoint)\"}")
        #expect(found.count == 1)
        #expect(found.first?.contains("otlp.endpoint") == true)
    }

    @Test func `a key that has no effect without an endpoint is refused without one`() {
        for key in ["sampling: 0.5", "attributes: {a: b}", "caFile: /etc/hostname"] {
            let found = problems(in: "otlp: {\(key)}")
            #expect(found.count == 1)
            #expect(found.first?.contains("is set without otlp.endpoint") == true)
        }
    }

    @Test func `a file of headers is checked at the start, and never quoted`() throws {
        let good = try file("Authorization: Bearer hunter2\n")
        let bad = try file("Bearer hunter2\n")
        let endpoint = "endpoint: \"https://collector\""
        #expect(problems(in: "otlp: {\(endpoint), headersFile: \(good)}") == [])
        for (file, words) in [
            (bad, "has no header `Name: value` in line 1"), ("/nowhere", "does not exist"),
        ] {
            let found = problems(in: "otlp: {\(endpoint), headersFile: \(file)}")
            #expect(found.contains { $0.contains("otlp.headersFile") && $0.contains(words) })
            #expect(!found.contains { $0.contains("hunter2") })
        }
    }

    @Test func `secrets that would cross the network unencrypted are noticed`() throws {
        let headers = try file("Authorization: Bearer hunter2\n")
        for (endpoint, isNoticed) in [
            ("http://collector:4318", true), ("https://collector:4318", false),
            ("http://localhost:4318", false), ("http://127.0.0.1:4318", false),
        ] {
            let configuration = try configuration(
                "otlp: {endpoint: \"\(endpoint)\", headersFile: \(headers)}")
            #expect(configuration.notices.isEmpty == !isNoticed, "\(endpoint)")
        }
        #expect(
            try configuration("otlp: {endpoint: \"http://collector:4318\"}").notices.isEmpty)
    }
}
