// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Simdjson

/// What a template is filled in from.
struct TemplateValues {
    var record: EventRecord
    var document: RecordDocument?
    /// Those that the template names.
    var headers: [String: UnsafeRawBufferPointer]
    var time: WallTime
}

extension PushTemplate {
    /// No payload that APNs takes is larger, whatever white space a field brings.
    private static let bytesMax = 1 << 16

    /// Appends the payload as JSON.
    func fill(
        _ output: inout [UInt8], from values: TemplateValues
    ) throws(UnreadableRecord) {
        _ = try Self.append(root, to: &output, values)
    }

    /// - Returns: false, with nothing appended, for a value that is to be left out.
    private static func append(
        _ node: Node, to output: inout [UInt8], _ values: TemplateValues
    ) throws(UnreadableRecord) -> Bool {
        guard output.count < bytesMax else {
            throw UnreadableRecord(.payloadTooLarge, "the push template makes too large a payload")
        }
        switch node {
        case .literal(let bytes): output += bytes
        case .text(let parts): try append(parts, to: &output, values)
        case .value(let value): return try append(value, to: &output, values)
        case .list(let nodes):
            output.append(UInt8(ascii: "["))
            var isFirst = true
            for node in nodes {
                let end = output.count
                if !isFirst { output.append(UInt8(ascii: ",")) }
                if try append(node, to: &output, values) {
                    isFirst = false
                } else {
                    output.removeSubrange(end...)
                }
            }
            output.append(UInt8(ascii: "]"))
        case .map(let members):
            output.append(UInt8(ascii: "{"))
            var isFirst = true
            for member in members {
                let end = output.count
                if !isFirst { output.append(UInt8(ascii: ",")) }
                var name = member.name
                name.withUTF8 { JSONString.append(UnsafeRawBufferPointer($0), to: &output) }
                output.append(UInt8(ascii: ":"))
                if try append(member.node, to: &output, values) {
                    isFirst = false
                } else {
                    output.removeSubrange(end...)
                }
            }
            output.append(UInt8(ascii: "}"))
        }
        return true
    }

    private static func append(
        _ value: Value, to output: inout [UInt8], _ values: TemplateValues
    ) throws(UnreadableRecord) -> Bool {
        switch value.origin {
        case .field(let path):
            guard let found = values.document?[path] else { break }
            if let type = value.type, !type.matches(found) {
                throw UnreadableRecord(
                    .invalidField,
                    "the push template needs \(type.rawValue) at \(path.text), where the record has "
                        + found.shape)
            }
            guard found.minify(into: &output, bytesMax: bytesMax) else {
                throw UnreadableRecord(.payloadTooLarge, "\(path.text) is too large for a payload")
            }
            return true
        case .time:
            output += "\(values.time.seconds)".utf8
            return true
        case .key, .header:
            guard let bytes = bytes(of: value.origin, values) else { break }
            JSONString.append(try text(bytes, value.origin), to: &output)
            return true
        }
        switch value.standIn {
        case .json(let bytes):
            output += bytes
            return true
        case .nothing: return false
        case nil: throw missing(value.origin)
        }
    }

    private static func append(
        _ parts: [Part], to output: inout [UInt8], _ values: TemplateValues
    ) throws(UnreadableRecord) {
        var joined: [UInt8] = []
        for part in parts {
            switch part {
            case .literal(let text): joined += text.utf8
            case .value(.field(let path)):
                guard let found = values.document?[path] else { throw missing(.field(path)) }
                if let text = found.string {
                    joined += text
                } else if found.object == nil, found.array == nil {
                    _ = found.minify(into: &joined, bytesMax: bytesMax)
                } else {
                    throw UnreadableRecord(
                        .invalidField, "\(path.text) is an object or an array, inside of text")
                }
            case .value(.time): joined += "\(values.time.seconds)".utf8
            case .value(let origin):
                guard let bytes = bytes(of: origin, values) else { throw missing(origin) }
                joined += try text(bytes, origin)
            }
            guard joined.count < bytesMax else {
                throw UnreadableRecord(
                    .payloadTooLarge, "the push template makes too large a payload")
            }
        }
        joined.withUnsafeBytes { JSONString.append($0, to: &output) }
    }

    private static func bytes(
        of origin: Origin, _ values: TemplateValues
    ) -> UnsafeRawBufferPointer? {
        switch origin {
        case .key: values.record.key
        case .header(let name): values.headers[name]
        case .field, .time: nil
        }
    }

    /// The bytes if they are UTF-8: others cannot be in JSON.
    private static func text(
        _ bytes: UnsafeRawBufferPointer, _ origin: Origin
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw UnreadableRecord(.invalidField, "\(origin.text) is not UTF-8")
        }
        return bytes
    }

    private static func missing(_ origin: Origin) -> UnreadableRecord {
        UnreadableRecord(
            .missingField,
            "the push template needs \(origin.text): give it a default, or say missing: skip")
    }
}

extension PushTemplate.FieldType {
    fileprivate func matches(_ value: JSONValue) -> Bool {
        switch self {
        case .string: value.string != nil
        case .integer: value.integerText != nil
        case .number: value.kind == .number
        case .boolean: value.kind == .bool
        case .object: value.object != nil
        case .array: value.array != nil
        }
    }
}
