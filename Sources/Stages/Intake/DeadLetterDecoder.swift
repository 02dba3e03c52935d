// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

/// Reads values of the dead-letters topic. For commands: it allocates what it returns.
package struct DeadLetterDecoder: ~Copyable {
    private var parser: JSONParser

    package init() {
        // 500 of the longest tokens and an event of 512 KiB, each byte escaped as \u0000.
        parser = JSONParser(bytesMax: 8 << 20)
    }

    package mutating func letter(
        _ value: UnsafeRawBufferPointer?
    ) throws(UnreadableRecord) -> DeadLetter {
        guard let value, value.count > 0 else {
            throw UnreadableRecord(.emptyValue, "a dead letter has a value")
        }
        let object = try parser.object(value)
        guard let version = object["v"] else { throw .missing("v", "write 1") }
        try version.checkVersion()
        return try DeadLetter(MemberReader(object: object))
    }

    /// The payload of a letter's pushes; nil for pushes that say "look again".
    /// - Precondition: the letter names tokens, and its original was not left out.
    package mutating func payload(
        of letter: DeadLetter
    ) throws(UnreadableRecord) -> EventPayload? {
        guard let body = letter.original?.value else { return nil }
        let parsed = body.withUnsafeBytes { bytes in
            Result { () throws(UnreadableRecord) in
                try EventPayload(json: try parser.object(bytes).value)
            }
        }
        return try parsed.get()
    }
}

extension DeadLetter {
    init(_ fields: MemberReader) throws(UnreadableRecord) {
        let reason = try fields.required("reason").text("reason", bytes: 0...Self.wordsMax)
        self.init(
            reason: String(reason), source: try Source(json: try fields.required("source")),
            firstAt: try fields.required("firstAt").instant("firstAt"),
            lastAt: try fields.required("lastAt").instant("lastAt"),
            attempts: Int(try fields.required("attempts").integer("attempts", in: 0...1_000_000)),
            subject: try fields.bytes(
                "subject", base64: "subjectBase64", bytesMax: RecordLimits.subjectBytesMax),
            targets: try Self.targets(try fields.required("tokens")))
        message = try fields.optional("message").map(Self.words)
        if let status = fields.optional("status") {
            self.status = UInt16(try status.integer("status", in: 100...599))
        }
        payloadSource = try fields.optional("payloadSource").map(Source.init(json:))
        app = try fields.optional("app").map(Self.words)
        collapseID = try fields.optional("collapseID").map(DeferredPush.collapseID)
        failures = try fields.optional("failures").map(Self.count).map(Int.init)
        lastOffset = try fields.optional("lastOffset").map(Self.count)
        original = try fields.optional("event").map(Original.init(json:))
        isOriginalLeftOut = fields.optional("eventLeftOut") != nil
    }

    /// More than any text of ours has.
    private static var wordsMax: Int { 4096 }

    private static func words(_ value: JSONValue) throws(UnreadableRecord) -> String {
        String(try value.text("message and app", bytes: 0...wordsMax))
    }

    private static func count(_ value: JSONValue) throws(UnreadableRecord) -> Int64 {
        try value.integer("failures and lastOffset", in: 0...Int64.max)
    }

    private static func targets(_ value: JSONValue) throws(UnreadableRecord) -> [Target] {
        var targets: [Target] = []
        for element in try value.elements("tokens") {
            guard targets.count < targetsMax, let object = element.object else {
                throw .field("tokens", "an array of at most \(targetsMax) objects")
            }
            targets.append(try Target(MemberReader(object: object)))
        }
        return targets
    }
}

extension DeadLetter.Target {
    fileprivate init(_ fields: MemberReader) throws(UnreadableRecord) {
        let digits = try fields.required("token")
            .text("token", bytes: 2...2 * RecordLimits.tokenBytesMax)
        guard let token = Hexadecimal.decode(String(digits)) else {
            throw .field("token", "hexadecimal of even length")
        }
        // A topic is an app, a part of a key, and a suffix of at most 32 bytes.
        let apnsTopic = try fields.required("apnsTopic")
            .text("apnsTopic", bytes: 1...RecordLimits.keyPartBytesMax + 32)
        self.init(
            token: token,
            environment: try fields.required("environment").environment("environment"),
            apnsTopic: String(apnsTopic))
    }
}

extension DeadLetter.Original {
    /// More than `deadLetters.eventBytesMax` may be set to.
    private static var bytesMax: Int { 1 << 20 }

    fileprivate init(json value: JSONValue) throws(UnreadableRecord) {
        guard let object = value.object else { throw .field("event", "an object") }
        let fields = MemberReader(object: object)
        self.init(
            key: try Self.bytes(fields, "key", "keyBase64"),
            value: try Self.bytes(fields, "value", "valueBase64"))
        guard let headers = fields.optional("headers") else { return }
        for element in try headers.elements("headers") {
            guard let object = element.object else {
                throw .field("headers", "an array of objects")
            }
            let header = MemberReader(object: object)
            let name = try header.required("name").text("name", bytes: 0...Self.bytesMax)
            let value = try header.bytes("value", base64: "valueBase64", bytesMax: Self.bytesMax)
            self.headers.append((String(name), value))
        }
    }

    /// Nil where the writer put nothing, which empty is not.
    private static func bytes(
        _ fields: MemberReader, _ name: StaticString, _ base64: StaticString
    ) throws(UnreadableRecord) -> [UInt8]? {
        guard fields.optional(name) != nil || fields.optional(base64) != nil else { return nil }
        return try fields.bytes(name, base64: base64, bytesMax: bytesMax)
    }
}
