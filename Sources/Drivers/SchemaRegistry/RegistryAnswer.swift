// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import SchemaCodecs
internal import Simdjson

/// A schema as the registry's API has it: of a number, or of a subject's version.
struct RegistryAnswer: Sendable {
    struct Reference: Sendable, Hashable {
        /// What the schema calls it.
        var name: String
        var subject: String
        var version: Int64
    }

    var text: [UInt8]
    /// The registry's word for the language.
    var language: String
    var references: [Reference] = []

    /// The largest answer: a schema's text, of which each quote is escaped, with some references.
    static let bytesMax = SchemaLimits.textBytesMax * 2 + (128 << 10)

    /// - Returns: nil if the body is no such schema, as if something else than a registry had answered.
    init?(_ body: [UInt8]) {
        var parser = JSONParser(bytesMax: Self.bytesMax, depthMax: 32)
        let read = body.withUnsafeBytes { bytes in
            (try? parser.parse(bytes))?.object.flatMap(RegistryAnswer.init(object:))
        }
        guard let read else { return nil }
        self = read
    }

    private init?(object: JSONObject) {
        guard let schema = object["schema"]?.string else { return nil }
        text = Array(schema)
        // Registries leave it out of Avro.
        language = "AVRO"
        if let type = object["schemaType"], !type.isNull {
            guard let text = type.string else { return nil }
            language = String(decoding: text, as: UTF8.self)
        }
        guard let list = object["references"], !list.isNull else { return }
        guard let list = list.array else { return nil }
        for member in list {
            guard let reference = member.object, let name = reference["name"]?.string,
                let subject = reference["subject"]?.string,
                let version = reference["version"]?.integer
            else { return nil }
            references.append(
                Reference(
                    name: String(decoding: name, as: UTF8.self),
                    subject: String(decoding: subject, as: UTF8.self), version: version))
        }
    }

    /// What the registry says of an error in its own words, such as that a user may not read a subject;
    /// nil if it says nothing.
    static func message(_ body: [UInt8]) -> String? {
        var parser = JSONParser(bytesMax: Self.bytesMax, depthMax: 32)
        return body.withUnsafeBytes { bytes in
            (try? parser.parse(bytes))?.object?["message"]?.string.map {
                String(String(decoding: $0, as: UTF8.self).prefix(Self.messageMax)).printable
            }
        }
    }

    private static let messageMax = 200

    /// The `error_code` of an answer that is an error; nil if it has none.
    static func errorCode(_ body: [UInt8]) -> Int64? {
        var parser = JSONParser(bytesMax: Self.bytesMax, depthMax: 32)
        return body.withUnsafeBytes { bytes in
            (try? parser.parse(bytes))?.object?["error_code"]?.integer
        }
    }
}
