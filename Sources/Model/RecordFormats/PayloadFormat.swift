// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
package import Simdjson

// The JSON of a push's body in events, deferred pushes and dead letters.

extension EventPayload {
    /// Minifies a push's body and checks that it is one of its push type.
    /// - Parameters:
    ///   - named: the type that the event names; nil to tell it by `aps`.
    ///   - moment: what its instants are held against; nil if they have been.
    init(
        json value: JSONValue, as named: PushType? = nil, at moment: RecordMoment? = nil
    ) throws(UnreadableRecord) {
        let aps = try Self.dictionary(value)
        let told: PushType? = if let named { named } else { try Self.type(toldBy: aps) }
        guard let type = told else { throw Self.untold }
        try self.init(value, aps, as: type, at: moment)
    }

    /// Reads a body that a template has made.
    package init(
        _ text: [UInt8], as named: PushType?, at moment: RecordMoment, _ parser: inout JSONParser
    ) throws(UnreadableRecord) {
        let parsed = text.withUnsafeBytes { bytes in
            Result { () throws(UnreadableRecord) in
                try EventPayload(json: try parser.object(bytes).value, as: named, at: moment)
            }
        }
        self = try parsed.get()
    }

    /// Reads the payload of a push that was made for a token of this class: it was checked then.
    init(json value: JSONValue, for tokenClass: TokenClass) throws(UnreadableRecord) {
        let aps = try Self.dictionary(value)
        let type = tokenClass.payloadType(interrupts: aps.map(Self.interrupts) ?? false)
        let activity = type == .liveActivity ? try? ActivityChange(aps: aps, at: nil) : nil
        self.init(body: try Self.minified(value, type), type: type, activity: activity)
    }

    private init(
        _ value: JSONValue, _ aps: JSONObject?, as type: PushType, at moment: RecordMoment?
    ) throws(UnreadableRecord) {
        guard type.row.carriesPayload else {
            throw .payload("a push of type \(type.name) has no payload of its own: leave it out")
        }
        var activity: ActivityChange?
        switch type {
        case .alert:
            guard let aps, Self.interrupts(aps) else {
                throw .payload("an alert needs alert, badge or sound in payload.aps")
            }
        case .background:
            guard let aps, aps["content-available"]?.integer == 1, !Self.interrupts(aps) else {
                throw .payload(
                    "a background push needs \"content-available\": 1 in payload.aps, and neither "
                        + "alert nor badge nor sound")
            }
        case .liveActivity: activity = try ActivityChange(aps: aps, at: moment)
        default: break
        }
        self.init(body: try Self.minified(value, type), type: type, activity: activity)
    }

    private static func minified(
        _ value: JSONValue, _ type: PushType
    ) throws(UnreadableRecord) -> [UInt8] {
        var body: [UInt8] = []
        guard value.minify(into: &body, bytesMax: type.payloadBytesMax) else {
            throw UnreadableRecord(
                .payloadTooLarge,
                "payload is over \(type.payloadBytesMax) bytes, the most that APNs takes of type "
                    + type.name)
        }
        if value.hasMendedNumbers, let number = endlessNumber(in: body) {
            throw .payload("payload has the number \(number), which phones cannot read")
        }
        return body
    }

    /// A number of JSON without white space that is beyond all that 64 bits can hold: a phone's parser
    /// refuses the whole text.
    private static func endlessNumber(in json: [UInt8]) -> String? {
        var rest = json[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""):
                while let inner = rest.popFirst(), inner != UInt8(ascii: "\"") {
                    if inner == UInt8(ascii: "\\") { rest = rest.dropFirst() }
                }
            case UInt8(ascii: "-"), 0x30...0x39:
                let tail = rest.prefix { !",]}".utf8.contains($0) }
                rest = rest.dropFirst(tail.count)
                let text = String(decoding: [byte] + tail, as: UTF8.self)
                if Double(text)?.isFinite != true { return String(text.prefix(40)) }
            default: continue
            }
        }
        return nil
    }

    /// Apple's part of the payload; nil if there is none, as in those of VoIP.
    private static func dictionary(_ value: JSONValue) throws(UnreadableRecord) -> JSONObject? {
        guard let object = value.object else { throw .payload("payload must be an object") }
        let dictionaries = object.reduce(0) { $1.key.equals("aps") ? $0 + 1 : $0 }
        if dictionaries == 0 { return nil }
        guard dictionaries == 1, let aps = object["aps"]?.object else {
            throw .payload("payload must have one object aps")
        }
        return aps
    }

    private static func type(toldBy aps: JSONObject?) throws(UnreadableRecord) -> PushType? {
        guard let aps else { throw .payload("payload must have one object aps, or pushType") }
        // The push that starts a Live Activity has an alert, too.
        if aps.contains(where: { $0.key.equals("content-state") && !$0.value.isNull }) {
            return .liveActivity
        }
        // An end may be without a state, and have an alert.
        if aps["event"]?.string.flatMap(ActivityChange.Event.init) == .end,
            aps["timestamp"]?.kind == .number
        {
            return .liveActivity
        }
        if interrupts(aps) { return .alert }
        return aps["content-available"]?.integer == 1 ? .background : nil
    }

    private static var untold: UnreadableRecord {
        .payload(
            "payload.aps needs alert, badge or sound, or \"content-available\": 1, or "
                + "content-state, or event: end with a timestamp: without any of them APNs accepts the push and the device ignores "
                + "it. Other types of push are named by pushType")
    }

    private static func interrupts(_ aps: JSONObject) -> Bool {
        aps.contains { name, value in
            !value.isNull
                && (name.equals("alert") || name.equals("badge") || name.equals("sound"))
        }
    }
}

extension ActivityChange {
    /// Checks what Apple demands of a Live Activity's `aps` ("Starting and updating Live Activities
    /// with ActivityKit push notifications").
    fileprivate init(
        aps: JSONObject?, at moment: RecordMoment?
    ) throws(UnreadableRecord) {
        guard let aps, let event = aps["event"]?.string.flatMap(Event.init) else {
            throw .payload("a Live Activity needs an event, start, update or end, in payload.aps")
        }
        guard let timestamp = aps["timestamp"]?.integer, timestamp > 0 else {
            throw .payload(
                "a Live Activity needs a timestamp, whole seconds since 1970, in payload.aps"
                    + Self.met(aps["timestamp"]))
        }
        let state = aps["content-state"].flatMap { $0.isNull ? nil : $0 }
        if event != .end || state != nil {
            guard state?.object != nil else {
                throw .payload(
                    "a Live Activity needs an object content-state in payload.aps"
                        + Self.met(aps["content-state"]))
            }
        }
        if event == .start {
            guard let name = aps["attributes-type"]?.string, name.count > 0,
                aps["attributes"]?.object != nil
            else {
                throw .payload(
                    "the start of a Live Activity needs attributes-type, a string, and attributes, "
                        + "an object, in payload.aps")
            }
            guard let alert = aps["alert"], !alert.isNull else {
                throw .payload("the start of a Live Activity needs an alert in payload.aps")
            }
        }
        for name: StaticString in ["stale-date", "dismissal-date", "relevance-score"] {
            guard let value = aps[name], !value.isNull else { continue }
            guard value.kind == .number else {
                throw .payload("payload.aps.\(name) must be a number\(Self.met(value))")
            }
        }
        try moment?.judge(aps, .timestamp)
        try moment?.judge(aps, .staleDate)
        try moment?.judge(aps, .dismissalDate)
        self.init(event: event, timestamp: timestamp)
    }

    /// What is there instead of what is needed.
    private static func met(_ value: JSONValue?) -> String {
        value.map { ", and it has \($0.shape) there" } ?? ""
    }
}

extension RecordMoment {
    fileprivate func judge(_ aps: JSONObject, _ instant: Instant) throws(UnreadableRecord) {
        for (name, value) in aps where name.elementsEqual(instant.rawValue.utf8) {
            if let seconds = value.double, let problem = problem(of: seconds, instant) {
                throw .payload(problem)
            }
        }
    }
}

extension ActivityChange.Event {
    fileprivate init?(_ word: UnsafeRawBufferPointer) {
        guard let known = Self.allCases.first(where: { word.elementsEqual($0.rawValue.utf8) })
        else { return nil }
        self = known
    }
}

extension UnreadableRecord {
    fileprivate static func payload(_ message: String) -> UnreadableRecord {
        UnreadableRecord(.invalidPayload, message)
    }
}
