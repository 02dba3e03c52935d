// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

// The JSON of a push's body in events, deferred pushes and dead letters.

extension EventPayload {
    /// Minifies a push's body and derives its push type from `aps`.
    init(json value: JSONValue) throws(UnreadableRecord) {
        guard let object = value.object else {
            throw UnreadableRecord(.invalidPayload, "payload must be an object")
        }
        let dictionaries = object.reduce(0) { $1.key.equals("aps") ? $0 + 1 : $0 }
        guard let aps = object["aps"]?.object, dictionaries == 1 else {
            throw UnreadableRecord(.invalidPayload, "payload must have one object aps")
        }
        let type: PushType = Self.interrupts(aps) ? .alert : .background
        if type == .background, aps["content-available"]?.integer != 1 {
            throw UnreadableRecord(
                .invalidPayload,
                "payload.aps needs alert, badge or sound, or \"content-available\": 1: "
                    + "without any of them APNs accepts the push and the device ignores it")
        }
        var body: [UInt8] = []
        guard value.minify(into: &body, bytesMax: type.row.bodyBytesMax) else {
            throw UnreadableRecord(
                .payloadTooLarge,
                "payload is over \(type.row.bodyBytesMax) bytes, the most that APNs takes")
        }
        self.init(body: body, type: type)
    }

    private static func interrupts(_ aps: JSONObject) -> Bool {
        aps.contains { name, value in
            !value.isNull
                && (name.equals("alert") || name.equals("badge") || name.equals("sound"))
        }
    }
}

extension EventPayload {
    /// The JSON Schema of what `init(json:)` accepts, except for its size.
    static var schema: [(String, JSONText)] {
        let background = JSONText.object([
            ("required", .array(["content-available"])),
            (
                "properties",
                .object([("content-available", .object([("const", .literal("1"))]))])
            ),
        ])
        return bodies(of: interruptions + [background])
    }

    /// The JSON Schema of a payload that may be sent with priority 10.
    static var alertSchema: JSONText { .object(bodies(of: interruptions)) }

    private static func bodies(of dictionaries: [JSONText]) -> [(String, JSONText)] {
        [
            (
                "properties",
                .object([
                    ("aps", .object([("type", "object"), ("anyOf", .array(dictionaries))]))
                ])
            ),
            ("required", .array(["aps"])),
        ]
    }

    private static var interruptions: [JSONText] {
        ["alert", "badge", "sound"].map { name in
            let isThere = JSONText.object([("not", .object([("type", "null")]))])
            return .object([
                ("required", .array([.string(name)])),
                ("properties", .object([(name, isThere)])),
            ])
        }
    }
}
