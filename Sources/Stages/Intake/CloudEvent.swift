// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Simdjson

/// The attributes of a CloudEvent 1.0 that are read. In binary mode each is a header, named with
/// `ce_` in front (CloudEvents' Kafka binding); in structured mode a member of the envelope.
package enum CloudEventAttribute: String, CaseIterable, Sendable {
    case specversion, id, source, type, subject, time
    /// Extensions of Lamplighter's, which mean the same as the corresponding fields of an event.
    case pushapp, pushinstallation, pushkinds, pushclasses, pushttl, pushcollapseid

    package var isRequired: Bool {
        switch self {
        case .specversion, .id, .source, .type: true
        default: false
        }
    }

    /// The name of the header in binary mode.
    package var header: String { Self.headers[index] }

    private static let headers = allCases.map { "ce_" + $0.rawValue }
    private var index: Int { Self.allCases.firstIndex(of: self)! }

    /// The format of a structured CloudEvent: `json` for `application/cloudevents+json;
    /// charset=utf-8`, the rest of any other type that begins so (`-batch+json`), nil where the
    /// type is that of the data.
    static func structuredFormat(
        of type: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        let type = type.unquoted
        let prefix = "application/cloudevents".utf8
        guard type.count >= prefix.count,
            zip(type, prefix).allSatisfy({ $0 | 0x20 == $1 | 0x20 })
        else { return nil }
        let rest = type[prefix.count...].prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 }
        let format = rest.first == UInt8(ascii: "+") ? rest.dropFirst() : rest
        return UnsafeRawBufferPointer(rebasing: format)
    }
}

extension EventFields {
    init(binary header: EventRecord.HeaderLookup) throws(UnreadableRecord) {
        try self.init { attribute in header(attribute.header) }
        traceparent =
            header(EventRecord.traceparentHeader) ?? header("ce_" + EventRecord.traceparentHeader)
    }

    /// Reads the envelope. Its `data` is the producer's and is not looked at.
    init(
        structured envelope: JSONObject, header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) {
        for member in envelope where !member.value.isNull && member.value.string == nil {
            for attribute in CloudEventAttribute.allCases
            where attribute != .pushttl && attribute != .time
                && member.key.elementsEqual(attribute.rawValue.utf8)
            {
                throw .field(attribute.rawValue, "a string")
            }
        }
        try self.init { attribute in
            var found: JSONValue?
            for member in envelope where member.key.elementsEqual(attribute.rawValue.utf8) {
                found = member.value
            }
            return found?.string
        }
        if let time = envelope["time"], !time.isNull, time.string == nil { remark = .timeAttribute }
        // CloudEvents' JSON format writes an Integer as a number; a string was read above.
        if let ttl = envelope["pushttl"], !ttl.isNull, ttl.string == nil {
            guard let seconds = ttl.integer, RecordLimits.ttlSeconds.contains(seconds) else {
                throw Self.badTTL
            }
            self.ttl = .seconds(seconds)
        }
        // CloudEvents' extension "distributed tracing". A wrong one does not make the event
        // unreadable.
        traceparent =
            header(EventRecord.traceparentHeader)
            ?? envelope["traceparent"]?.string
    }

    private init(
        _ given: (CloudEventAttribute) -> UnsafeRawBufferPointer?
    ) throws(UnreadableRecord) {
        self.init()
        // A serializer of JSON puts every header in quotation marks.
        let isQuoted = given(.specversion)?.first == UInt8(ascii: "\"")
        func attribute(_ name: CloudEventAttribute) -> UnsafeRawBufferPointer? {
            isQuoted ? given(name)?.unquoted : given(name)
        }
        for required in CloudEventAttribute.allCases where required.isRequired {
            guard let value = attribute(required), value.count > 0 else {
                throw .missing(required.rawValue, "CloudEvents requires it")
            }
        }
        guard attribute(.specversion)!.equals("1.0") else {
            throw UnreadableRecord(.unknownVersion, "specversion must be 1.0")
        }
        // What is optional and wrong is as if it were not there: the key names the subject, and the
        // record's timestamp is its time.
        if let text = attribute(.subject) {
            guard text.count <= RecordLimits.subjectBytesMax else {
                throw .field("subject", "1 to \(RecordLimits.subjectBytesMax) bytes")
            }
            if text.isEmpty { remark = .subjectAttribute } else { subject = text }
        }
        if let text = attribute(.time) {
            time = WallTime(rfc3339: text)
            if time == nil { remark = .timeAttribute }
        }
        // A longer one is not kept, since memory for it is bounded.
        id = attribute(.id).flatMap { RecordLimits.subjectBytes.contains($0.count) ? $0 : nil }
        app = attribute(.pushapp)
        if let text = attribute(.pushinstallation) {
            guard RecordKey.isPart(text) else {
                throw .field("pushinstallation", RecordKey.partDemand)
            }
            installation = text
        }
        if let text = attribute(.pushkinds) { kinds = try Self.list(kinds: text) }
        if let text = attribute(.pushclasses) { classes = try Self.list(classes: text) }
        if let text = attribute(.pushttl) { ttl = try Self.seconds(text) }
        if let text = attribute(.pushcollapseid) { collapseID = try Self.collapseID(text) }
    }

    private static func list(kinds text: UnsafeRawBufferPointer) throws(UnreadableRecord)
        -> [String]
    {
        let kinds = text.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard RecordLimits.kinds.contains(kinds.count),
            kinds.allSatisfy({ RecordLimits.kindBytes.contains($0.count) })
        else {
            throw .field("pushkinds", "1 to \(RecordLimits.kindsMax) kinds with commas between")
        }
        // Invalid UTF-8 is refused: repaired, it would name another kind, perhaps a longer one than
        // allowed.
        return try kinds.map { kind throws(UnreadableRecord) in
            guard let text = String(validating: kind, as: UTF8.self) else {
                throw .field("pushkinds", "UTF-8")
            }
            return text
        }
    }

    private static func list(
        classes text: UnsafeRawBufferPointer
    ) throws(UnreadableRecord) -> TokenClassSet {
        var classes: TokenClassSet = []
        for word in text.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            classes.formUnion(try tokenClass(UnsafeRawBufferPointer(rebasing: word)))
        }
        return classes
    }

    private static func seconds(_ text: UnsafeRawBufferPointer) throws(UnreadableRecord) -> Duration
    {
        let range = RecordLimits.ttlSeconds
        guard (1...8).contains(text.count), text.allSatisfy({ (0x30...0x39).contains($0) }),
            case let seconds = text.reduce(Int64(0), { $0 * 10 + Int64($1 - 0x30) }),
            range.contains(seconds)
        else { throw badTTL }
        return .seconds(seconds)
    }

    private static var badTTL: UnreadableRecord {
        .field("pushttl", "seconds, from 1 to \(RecordLimits.ttlSecondsMax)")
    }
}

extension UnsafeRawBufferPointer {
    /// Without a pair of quotation marks around it.
    fileprivate var unquoted: UnsafeRawBufferPointer {
        guard count >= 2, first == UInt8(ascii: "\""), last == UInt8(ascii: "\"") else {
            return self
        }
        return UnsafeRawBufferPointer(rebasing: self[1..<(count - 1)])
    }

    /// Whether these are the letters of a word, in upper or lower case.
    func equalsIgnoringCase(_ word: String) -> Bool {
        count == word.utf8.count && zip(self, word.utf8).allSatisfy { $0 | 0x20 == $1 | 0x20 }
    }
}
