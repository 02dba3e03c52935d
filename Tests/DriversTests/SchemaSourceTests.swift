// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import PushModel
import SchemaCodecs
import Synchronization
import Testing

@testable import SchemaRegistry

@Suite(.serialized) struct `A source of schemas` {
    private static let order = #"""
        [{"subject": "currency", "schema": "{\"type\":\"enum\",\"name\":\"Currency\",\"symbols\":[\"EUR\"]}"},
         {"subject": "a/b c..", "schema": "{\"type\":\"record\",\"name\":\"Money\",\"fields\":[{\"name\":\"c\",\"type\":\"Currency\"}]}",
          "references": [{"name": "Currency", "subject": "currency", "version": 1}]},
         {"subject": "order", "schema": "{\"type\":\"record\",\"name\":\"Order\",\"fields\":[{\"name\":\"m\",\"type\":\"Money\"},{\"name\":\"c\",\"type\":\"Currency\"}]}",
          "references": [{"name": "Money", "subject": "a/b c..", "version": 1},
                         {"name": "Currency", "subject": "currency", "version": 1}]},
         {"subject": "broken", "schema": "{\"type\":\"nothing\"}"},
         {"subject": "thrift", "schema": "x", "schemaType": "THRIFT"},
         {"subject": "lost", "schema": "\"int\"", "references": [{"name": "x", "subject": "gone", "version": 3}]},
         {"subject": "loop", "schema": "\"int\"", "references": [{"name": "l", "subject": "loop", "version": 1}]},
         {"subject": "proto", "schema": "message M { optional T t = 1; } message T {}", "schemaType": "PROTOBUF"},
         {"subject": "json", "schema": "{}", "schemaType": "JSON"}]
        """#

    private func source(
        _ urls: [String], _ change: (inout RegistrySettings) -> Void = { _ in }
    ) -> SchemaSource {
        var settings = RegistrySettings(urls: urls)
        change(&settings)
        return SchemaSource(settings) {}
    }

    /// Asks until there is an answer, or none for a while.
    private func answer(
        _ source: SchemaSource, _ number: UInt32, seconds: Double = 10
    ) -> SchemaAnswer {
        let patience = Patience(.seconds(seconds))
        while true {
            let answer = source.lookup(SchemaID(rawValue: number))
            switch answer {
            case .pending, .unreachable:
                if patience.isOver { return answer }
                usleep(2000)
            default: return answer
            }
        }
    }

    private func isKnown(_ answer: SchemaAnswer, _ language: SchemaLanguage) -> Bool {
        if case .known(let schema) = answer { return schema.language == language }
        return false
    }

    private func reason(_ answer: SchemaAnswer) -> String {
        switch answer {
        case .unknown(let text), .unusable(let text), .unreachable(let text): text
        case .known: "known"
        case .pending: "pending"
        }
    }

    @Test func `a schema comes with all that it refers to, and is fetched once`() throws {
        let server = try SchemaRegistryServer(Self.order)
        let called = Mutex(0)
        let source = SchemaSource(RegistrySettings(urls: [server.url + "/"])) {
            called.withLock { $0 += 1 }
        }
        #expect(reason(source.lookup(SchemaID(rawValue: 3))) == "pending")
        #expect(isKnown(answer(source, 3), .avro))
        #expect(isKnown(answer(source, 3), .avro))
        #expect(
            server.requests.map(\.path) == [
                "/schemas/ids/3", "/subjects/a%2Fb%20c%2E%2E/versions/1?deleted=true",
                "/subjects/currency/versions/1?deleted=true",
            ])
        for (number, language) in [(7, SchemaLanguage.avro), (8, .protobuf), (9, .json)] {
            #expect(isKnown(answer(source, UInt32(number)), language))
        }
        // The call comes right after the answer can be seen.
        let patience = Patience()
        while called.withLock({ $0 }) < 4, !patience.isOver { usleep(2000) }
        #expect(called.withLock { $0 } == 4)
        #expect(source.status.known == 4 && source.status.counts.fetched == 4)
    }

    @Test func `what the registry lacks and what cannot be read are told apart`() throws {
        let server = try SchemaRegistryServer(Self.order)
        let source = source([server.url])
        #expect(reason(answer(source, 77)) == "schema 77 is not in the registry")
        #expect(reason(answer(source, 4)) == "schema 4: the type nothing is not defined")
        #expect(
            reason(answer(source, 5))
                == "schema 5: it is THRIFT, and only AVRO, PROTOBUF and JSON are read")
        #expect(
            reason(answer(source, 6))
                == "schema 6: it refers to version 3 of gone, which is not in the registry")
        let counts = source.status.counts
        #expect(counts.unknown == 1 && counts.unusable == 3 && counts.unreachable == 0)
    }

    @Test(arguments: [
        ("status 500", "answers 500"), ("status 401", "answers 401"), ("page", "answers 404"),
        ("status 301", "answers 301"), ("garbage", "answers with no schema"),
        ("large", "the answer has more than"), ("silence", "Timeout was reached"),
    ])
    func `whatever else a registry says of a schema leaves its records waiting, and no others`(
        behaviour: String, cause: String
    ) throws {
        let server = try SchemaRegistryServer(Self.order)
        server.behave("well", of: "/schemas/ids/1", behaviour)
        let source = source([server.url]) {
            if behaviour == "silence" { $0.requestTimeMax = .seconds(2) }
        }
        _ = source.lookup(SchemaID(rawValue: 1))
        let patience = Patience()
        while source.status.counts.failed == 0, !patience.isOver { usleep(2000) }
        #expect(reason(source.lookup(SchemaID(rawValue: 1))).contains(cause))
        #expect(isKnown(answer(source, 2), .avro))
        #expect(source.status.failure == nil && source.status.wanted == 1)
        server.behave("well")
        #expect(isKnown(answer(source, 1), .avro))
        #expect(source.status.wanted == 0 && source.status.counts.unreachable == 0)
    }

    @Test(arguments: [
        ("status 429 64800", true), ("status 503 64800", true), ("status 500 64800", false),
    ])
    func `a registry may silence itself for a minute, by 429 and 503 for every schema`(
        behaviour: String, isForAll: Bool
    ) throws {
        let server = try SchemaRegistryServer(Self.order)
        server.behave("well", of: "/schemas/ids/1", behaviour)
        var client = RegistryClient(RegistrySettings(urls: [server.url]))
        guard
            case .failed(_, let wait, let isItsWordForAll) = client.fetch(SchemaID(rawValue: 1))
        else {
            Issue.record("another outcome")
            return
        }
        #expect(wait == .seconds(60) && isItsWordForAll == isForAll)
        let source = source([server.url])
        _ = source.lookup(SchemaID(rawValue: 1))
        let patience = Patience()
        while source.status.counts.failed == 0, !patience.isOver { usleep(2000) }
        if isForAll {
            #expect(reason(source.lookup(SchemaID(rawValue: 2))).contains(" answers "))
            #expect(source.status.failure == nil)
        } else {
            #expect(isKnown(answer(source, 2), .avro))
        }
        source.stop()
    }

    @Test func `slow answers hold up no others`() throws {
        let server = try SchemaRegistryServer(Self.order)
        server.behave("well", of: "/schemas/ids/10", "silence")
        let source = source([server.url])
        // The request for 10 takes its 10 seconds; what comes after needs none of them.
        for number: UInt32 in [10, 100, 101, 102] { _ = source.lookup(SchemaID(rawValue: number)) }
        for number: UInt32 in [1, 2, 3] { #expect(isKnown(answer(source, number), .avro)) }
        #expect(source.status.counts.failed == 0)
    }

    @Test func `a schema is forgotten soon after somebody last asked for it`() throws {
        let server = try SchemaRegistryServer(Self.order)
        server.behave("status 403")
        let source = source([server.url]) { $0.wantedLife = .milliseconds(10) }
        _ = source.lookup(SchemaID(rawValue: 1))
        let patience = Patience()
        while source.status.counts.failed == 0 || source.status.wanted > 0, !patience.isOver {
            usleep(2000)
        }
        #expect(source.status.wanted == 0)
    }

    @Test func `a registry that cannot be reached is asked for one schema at a time`() throws {
        let source = source(["http://127.0.0.1:1"])
        for number: UInt32 in 1...20 { _ = source.lookup(SchemaID(rawValue: number)) }
        let patience = Patience()
        while source.status.failure == nil, !patience.isOver { usleep(2000) }
        #expect(reason(source.lookup(SchemaID(rawValue: 99))).hasPrefix("http://127.0.0.1:1: "))
        #expect(source.status.failingSince != nil && source.status.counts.failed == 0)
        source.stop()
    }

    @Test func `an instance that is down is passed over, and one that lags behind decides nothing`()
        throws
    {
        let (full, empty) = (try SchemaRegistryServer(Self.order), try SchemaRegistryServer())
        let source = source(["http://127.0.0.1:1", empty.url, full.url])
        #expect(isKnown(answer(source, 1), .avro))
        #expect(isKnown(answer(source, 2), .avro))
        // The one that had it is asked first.
        #expect(empty.requests.count == 1)
        #expect(reason(answer(source, 99, seconds: 1)).hasPrefix("http://127.0.0.1:1: "))
        let both = self.source([empty.url, full.url])
        #expect(reason(answer(both, 99)) == "schema 99 is not in the registry")
    }

    @Test func `TLS is verified, and the password is sent and never shown`() throws {
        let server = try SchemaRegistryServer(
            Self.order, isTLS: true, user: "lamp", secret: "s3cret+")
        let good = source([server.url]) {
            $0.caFile = server.caFile
            $0.user = "lamp"
            $0.password = Secret("s3cret+")
        }
        #expect(isKnown(answer(good, 1), .avro))
        #expect(server.requests.allSatisfy { $0.authorization == "Basic bGFtcDpzM2NyZXQr" })
        let untrusting = source([server.url])
        #expect(reason(answer(untrusting, 1, seconds: 1)).contains("certificate"))
        let wrong = source([server.url]) {
            $0.caFile = server.caFile
            $0.user = "lamp"
            $0.password = Secret("hunter2")
        }
        let text = reason(answer(wrong, 1, seconds: 1))
        #expect(text.contains("answers 401") && !text.contains("hunter2"))
        var settings = RegistrySettings(urls: [server.url])
        settings.password = Secret("hunter2")
        #expect(!"\(settings)".contains("hunter2"))
    }

    @Test func `after a stop nothing is asked any more`() throws {
        let server = try SchemaRegistryServer(Self.order)
        let source = source([server.url])
        source.stop()
        #expect(reason(answer(source, 1, seconds: 0.3)) == "pending")
        #expect(server.requests.isEmpty)
    }
}
