// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import Intake
internal import OpenSSL
internal import Testing

@testable internal import Configuration
@testable internal import Worker
@testable internal import lamplighter

@Suite struct `Text of a secret` {
    @Test(arguments: [
        ("word", "word"), ("word\n", "word"), ("word\r\n", "word"), ("word\r", "word"),
        ("word\n\n", "word"), ("word\r\n\r\n", "word"), ("\u{FEFF}word", "word"),
        ("\u{FEFF}word\r\n", "word"), ("word ", "word "), (" word\n", " word"), ("", ""),
        ("\n", ""), ("\"word\"", "\"word\""), ("wörd\n", "wörd"),
    ])
    func `line ends after a secret are no part of it`(text: String, secret: String) throws {
        #expect(try SecretText.line(text) == secret)
    }

    @Test(arguments: [
        ("one\ntwo", 3), ("one\r\ntwo\r\n", 3), ("\none", 0), ("\u{FEFF}a\rb", 1), ("ä\nb\n", 2),
    ])
    func `a line end inside is refused with its place`(text: String, place: Int) {
        do throws(Complaint) {
            _ = try SecretText.line(text)
            Issue.record("it was read")
        } catch {
            #expect(error.wrong.contains("after byte \(place) of"))
            #expect(!error.wrong.contains("one"))
        }
    }

    @Test func `a key is read however it was handed over`() throws {
        let pem = try ES256Key.generate().privatePEM
        let lines = pem.split(separator: "\n").map(String.init)
        let body = lines.dropFirst().dropLast().joined()
        let trimmed = lines.joined(separator: "\n")
        let variants = [
            pem, trimmed, pem.replacing("\n", with: "\r\n"), pem.replacing("\n", with: "\r"),
            trimmed.replacing("\n", with: #"\n"#), pem.replacing("\n", with: #"\n"#),
            trimmed.replacing("\n", with: #"\r\n"#), trimmed.replacing("\n", with: " "),
            lines.joined(), "\(lines[0])\n\(body)\n\(lines.last!)\n",
            Data(pem.utf8).base64EncodedString(), "\(Data(pem.utf8).base64EncodedString())\n", body,
            "\"\(trimmed)\"", "\"\(trimmed.replacing("\n", with: #"\n"#))\"", "'\(trimmed)'",
            "\u{FEFF}\(pem)", "\n\(pem)", lines.map { "  \($0)" }.joined(separator: "\n"),
        ]
        let expected = try ES256Key(pem: pem).publicPEM()
        for text in variants {
            #expect(
                try ES256Key(pem: SecretText.key(text)).publicPEM() == expected, "\(text.count)")
        }
    }

    @Test(arguments: [
        "", "AuthKey.p8", "—--BEGIN PRIVATE KEY—--", "-----BEGIN PRIVATE KEY-----", "AAAA",
    ])
    func `what is no key stays none`(text: String) {
        #expect(throws: (any Error).self) { try ES256Key(pem: SecretText.key(text)) }
    }

    @Test func `line ends after a variable's value are no part of it`() throws {
        let read = try configuration(
            "", ["LAMPLIGHTER_KAFKA_BOOTSTRAP": "kafka:9092\r\n"])
        #expect(read.kafka.bootstrap == "kafka:9092")
        let wrong = problems(
            in: "", ["LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD": "one\ntwo\n"])
        #expect(wrong.count == 1 && wrong[0].contains("LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD"))
        #expect(wrong[0].contains("after byte 3 of 7") && !wrong[0].contains("two"))
    }

    @Test(
        arguments: [
            (
                "kafka: {properties: {sasl.password: \"${KAFKA_PASSWORD}\"}}",
                "LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD"
            ),
            ("kafka: {group: \"${GROUP}\"}", "LAMPLIGHTER_KAFKA_GROUP"),
            ("kafka: {group: \"$(GROUP)\"}", "LAMPLIGHTER_KAFKA_GROUP"),
            (
                "kafka: {properties: {sasl.password: \"$(KAFKA_PASSWORD)\"}}",
                "LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD"
            ),
            (
                "kafka: {properties: {sasl.password: \"${KAFKA_PASSWORD:-${OTHER}}\"}}",
                "LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD"
            ),
            (
                "kafka: {properties: {sasl.password: \"${kafka.password:s3cret}\"}}",
                "LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD"
            ),
            (
                "kafka: {properties: {sasl.password: \"${KAFKA_PASSWORD:-s3cret}\"}}",
                "LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD"
            ),
            (
                "kafka: {properties: {sasl.password: \"${KAFKA_PASSWORD:?}\"}}",
                "LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD"
            ),
            ("admin: {tokenFile: \"${TOKEN_FILE}\"}", "LAMPLIGHTER_ADMIN_TOKENFILE"),
            (
                "apns: {credentials: {home: {apps: [\"${APP}\"]}}}",
                "LAMPLIGHTER_APNS_CREDENTIALS_HOME_APPS"
            ),
            ("kafka: {events: {push: {app: \"${APP}\"}}}", "LAMPLIGHTER_KAFKA_EVENTS_PUSH_APP"),
            (
                "kafka: {events: {eventTests: {app: \"${APP}\"}}}",
                "LAMPLIGHTER_KAFKA_EVENTS_EVENTTESTS_APP"
            ),
            (
                "apns: {credentials: {push: {keyID: \"${KEY}\"}}}",
                "LAMPLIGHTER_APNS_CREDENTIALS_PUSH_KEYID"
            ),
            ("kafka: {events: {a: {subject: \"${key}\"}}}", nil),
            ("kafka: {events: {a: {subject: s, subjects: [\"${key}\"]}}}", nil),
            ("kafka: {events: {a: {subject: s, push: {collapseID: \"${key}\"}}}}", nil),
            (
                "kafka: {events: {a: {subject: s, push: {payload: {aps: {alert: \"${key}\"}}}}}}",
                nil
            ),
            ("kafka: {events: {a: {when: [{field: /x, equals: \"${X}\"}]}}}", nil),
            ("kafka: {eventTests: {a: [{name: \"${X}\"}]}}", nil),
            ("kafka: {properties: {sasl.username: $ConnectionString}}", nil),
            ("kafka: {properties: {sasl.password: \"a${b}c\"}}", nil),
            ("kafka: {properties: {sasl.password: \"${}\"}}", nil),
            ("kafka: {properties: {sasl.password: \"${1}\"}}", nil),
            ("kafka: {properties: {sasl.password: \"$()\"}}", nil),
            ("kafka: {properties: {sasl.password: \"a$(b)\"}}", nil),
            ("kafka: {properties: {sasl.password: \"${a b}\"}}", nil),
            ("kafka: {properties: {sasl.password: \"$KAFKA\"}}", nil),
            (
                "kafka: {events: {a: {subject: \"{key}\", push: {payload: {aps: {alert: \"${{a}}\"}}}}}}",
                nil
            ),
        ] as [(String, String?)])
    func `a variable that nobody fills in is told, with the one to set`(
        yaml: String, variable: String?
    ) {
        let found = problems(in: yaml, without: ["APNS_CREDENTIALS_HOME_APPS"])
            .filter { $0.contains("variables are not filled in") }
        #expect(found.count == (variable == nil ? 0 : 1), "\(found)")
        if let variable { #expect(found.first?.hasSuffix("set " + variable) == true, "\(found)") }
        #expect(!found.contains { $0.contains("$") }, "\(found)")
    }

    /// The list of these keys is written by hand.
    @Test func `every key that is made of records or compared with them may have a dollar sign`() {
        let ofRecords = [
            SettingType<SubjectTemplate>.subjectTemplate.notation,
            SettingType<PushTemplate>.pushTemplate.notation,
            SettingType<[RecordCondition]>.conditions.notation,
            SettingType<[BindingTest]>.bindingTests.notation,
        ]
        var found = 0
        for (path, _, form) in Configuration.shape.flatMap(\.values) {
            let variable = Setting(content: .scalar("${key}"), origin: .line(1))
            let setting = path.reversed().reduce(variable) { value, name in
                Setting(content: .map([.init(name: name, value: value)]), origin: .line(1))
            }
            let isOfRecords = ofRecords.contains { form.notation.contains($0) }
            #expect(setting.unfilled().isEmpty == isOfRecords, "\(path)")
            found += isOfRecords ? 1 : 0
        }
        #expect(found == 7)
    }

    @Test func `a variable may give what looks like one, and a template may be one`() throws {
        let read = try configuration(
            "kafka: {events: {a: {subject: \"${key}\"}}}",
            ["LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD": "${PASSWORD}"])
        #expect(read.description.contains("kafka.events.a.subject: ${key}"))
    }

    @Test(arguments: [
        "LAMPLIGHTER_REGISTRAR_PORT", "LAMPLIGHTER_HEALTH_PORT", "LAMPLIGHTER_ADMIN_PORT",
    ])
    func `a Service with the name of a key is ignored`(variable: String) throws {
        for address in ["tcp://10.0.0.7:8443", "udp://10.0.0.7:53", "tcp://[fd00::7]:8443"] {
            let read = try configuration("", [variable: address])
            #expect(read.notices.contains { $0.contains(variable) })
        }
        #expect(problems(in: "", [variable: "tcp"]).count == 1)
    }
}
