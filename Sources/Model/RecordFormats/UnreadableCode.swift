// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
package import Simdjson

/// Every reason for which a record of any topic cannot be read: the labels of the metric, and the
/// `reason` of the dead letter.
package enum UnreadableCode: String, CaseIterable, Sendable {
    /// The value has length zero where only a tombstone removes.
    case emptyValue
    /// The value is not JSON, not UTF-8, or nested too deeply.
    case invalidJSON
    case recordTooLarge
    /// The value is JSON, but not an object.
    case notAnObject
    /// The record is of a later format.
    case unknownVersion
    case missingField
    /// A field has the wrong type or is out of its range.
    case invalidField
    /// Nothing names the subject.
    case missingSubject
    case invalidSubject
    case missingApp
    /// No credential serves the app.
    case unknownApp
    /// A credential serves the app, but not in this environment.
    case unservedEnvironment
    /// The event is for a whole kind, where that is not allowed.
    case kindWideRefused
    /// The event is for an installation, where that is not allowed.
    case installationRefused
    /// The event is for more tokens than `planning.fanOutMax`: it is withheld until it is released.
    case fanOutTooLarge
    case invalidPayload
    case payloadTooLarge
    /// A priority that APNs would answer with `BadPriority`.
    case invalidPriority
    /// A binding asks for CloudEvents and the record is not one.
    case notCloudEvent
    /// A binding asks for changes of rows and the record is none.
    case notChange
    /// A binding asks for a schema, and the bytes do not begin as a schema registry's do.
    case schemaFrame
    /// The schema registry does not have the schema.
    case unknownSchema
    /// The schema cannot be used.
    case unusableSchema
    /// The content is not what its schema says.
    case schemaMismatch
    case invalidKey
    /// The value says that it belongs to another key.
    case keyMismatch
    case tooManyRows
}

extension UnreadableRecord {
    package init(_ code: UnreadableCode, _ message: String) {
        self.init(code: code.rawValue, message: message)
    }

    /// - Parameters:
    ///   - bytes: how many the record has.
    ///   - most: how many it may have.
    /// - Parameter bytes: what is no JSON, or too much of it.
    package init(_ error: JSONError, of bytes: UnsafeRawBufferPointer, most: Int) {
        switch error.code {
        case .tooLarge:
            self.init(
                .recordTooLarge,
                "\(bytes.count) bytes are more than the \(most) that a record may have")
        default: self.init(.invalidJSON, Self.otherFormat(of: bytes) ?? error.message)
        }
    }

    /// What bytes are that are no JSON, by the first of them, and what to do; nil where they do not say.
    private static func otherFormat(of bytes: UnsafeRawBufferPointer) -> String? {
        guard bytes.count > 4 else { return nil }
        switch (bytes[0], bytes[1]) {
        case (0xFF, 0xFE), (0xFE, 0xFF), (0x7B, 0), (0, 0x7B), (0x5B, 0), (0, 0x5B):
            return "it is UTF-16, and JSON in a record is UTF-8"
        case (0x1F, 0x8B): return compressed("gzip")
        case (0x28, 0xB5) where bytes[2] == 0x2F && bytes[3] == 0xFD: return compressed("zstd")
        case (0, _):
            return
                "it begins as a value with a schema does, a zero byte and the schema's number: in "
                + "kafka.events, valueSchema reads such values"
        default: return nil
        }
    }

    private static func compressed(_ format: String) -> String {
        "it is compressed with \(format), and a value is to be plain: Kafka's clients compress by "
            + "themselves (compression.type)"
    }

    package static func field(_ name: String, _ demand: String) -> UnreadableRecord {
        UnreadableRecord(.invalidField, "\(name) must be \(demand)")
    }

    package static func missing(_ name: String, _ demand: String) -> UnreadableRecord {
        UnreadableRecord(.missingField, "\(name) is missing: \(demand)")
    }
}

extension JSONParser {
    /// Parses a record's value, which must be a JSON object.
    package mutating func object(
        _ bytes: UnsafeRawBufferPointer
    ) throws(UnreadableRecord) -> JSONObject {
        let value: JSONValue
        do throws(JSONError) {
            value = try parse(bytes)
        } catch {
            throw UnreadableRecord(error, of: bytes, most: bytesMax)
        }
        guard let object = value.object else {
            throw UnreadableRecord(
                .notAnObject, "the value must be a JSON object, and it is \(value.shape)")
        }
        return object
    }
}
