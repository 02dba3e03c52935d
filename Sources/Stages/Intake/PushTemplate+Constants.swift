// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

// What a template's constant parts say, whatever the records hold. A mistake in them would make a
// dead letter of every record.

extension PushTemplate {
    /// What is known of a member before there is a record.
    fileprivate enum Known: Equatable {
        case absent
        case text(String)
        /// Text that has values of the record in it.
        case someText
        /// A number, `true` or `false`, as JSON.
        case literal(String)
        case object, array
        /// A value of the record, or none.
        case unknown

        var isUnknown: Bool { self == .unknown }
        var mayBeThere: Bool { self != .absent }
        var isThere: Bool { mayBeThere && !isUnknown }

        func mayBe(_ type: FieldType) -> Bool {
            switch (self, type) {
            case (.unknown, _): true
            case (.text, .string), (.someText, .string), (.object, .object), (.array, .array): true
            case (.literal(let text), .integer): Int64(text) != nil
            case (.literal(let text), .number): Double(text) != nil
            default: false
            }
        }
    }

    /// Apple's part of the payload.
    private enum AppleDictionary {
        case absent, unknown, wrong
        case members([String: Known])
    }

    private var dictionary: AppleDictionary {
        guard case .map(let members) = root, let aps = members.last(where: { $0.name == "aps" })
        else { return .absent }
        switch aps.node {
        case .map(let members):
            return .members(
                members.reduce(into: [:]) { $0[$1.name] = Self.known($1.node) })
        case .value: return .unknown
        case .literal, .text, .list: return .wrong
        }
    }

    private static func known(_ node: Node) -> Known {
        switch node {
        case .literal(let bytes):
            if bytes.first == UInt8(ascii: "\"") { return text(ofConstant: bytes) }
            let text = String(decoding: bytes, as: UTF8.self)
            return text == "null" ? .absent : .literal(text)
        case .text: return .someText
        case .value: return .unknown
        case .list: return .array
        case .map: return .object
        }
    }

    /// Words of Apple's have nothing in them that JSON escapes.
    private static func text(ofConstant bytes: [UInt8]) -> Known {
        .text(String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self))
    }

    // MARK: The push type

    /// What tells the type of a push whose binding names none.
    private enum Teller: Equatable {
        case payload(PushType)
        case record, nothing
    }

    /// The type that the payload tells of every push; nil if the record tells it, or nothing does.
    var toldType: PushType? {
        guard case .members(let aps) = dictionary, case .payload(let type) = Self.teller(aps)
        else { return nil }
        return type
    }

    private static let interruptions = ["alert", "badge", "sound"]

    /// As `EventPayload` tells it.
    private static func teller(_ aps: [String: Known]) -> Teller {
        let state = aps["content-state"] ?? .absent
        if state.isUnknown { return .record }
        if state.isThere { return .payload(.liveActivity) }
        switch end(aps) {
        case true?: return .payload(.liveActivity)
        case nil: return .record
        case false?: break
        }
        let interrupts = interruptions.compactMap { aps[$0] }
        if interrupts.contains(where: \.isThere) { return .payload(.alert) }
        if interrupts.contains(where: \.isUnknown) { return .record }
        switch aps["content-available"] ?? .absent {
        case .unknown: return .record
        case .literal("1"): return .payload(.background)
        default: return .nothing
        }
    }

    /// Whether it is the end of a Live Activity, which may be without a state; nil if the record says so.
    private static func end(_ aps: [String: Known]) -> Bool? {
        let event = aps["event"] ?? .absent
        let timestamp = aps["timestamp"] ?? .absent
        guard event == .text("end") || event == .someText || event.isUnknown,
            timestamp.mayBe(.number)
        else { return false }
        return event == .text("end") && !timestamp.isUnknown ? true : nil
    }

    // MARK: Problems

    /// What every record's payload would have wrong; nil if nothing is.
    ///
    /// - Parameters:
    ///   - named: the push type that the binding names.
    ///   - classes: those that its events are for.
    func problem(as named: PushType?, for classes: TokenClassSet) -> PushTemplateError? {
        if let number = root.endlessNumber {
            return PushTemplateError(
                place: "", problem: "the number \(number) is beyond what phones read")
        }
        let aps: [String: Known]
        switch dictionary {
        case .members(let members): aps = members
        case .unknown: return problemOfSize(named, classes)
        case .absent:
            guard let named else { return Self.untold("") }
            if let problem = Self.problem(of: [:], as: named) { return problem }
            return problemOfSize(named, classes)
        case .wrong: return PushTemplateError(place: "/aps", problem: "it must be a map")
        }
        switch named.map(Teller.payload) ?? Self.teller(aps) {
        case .payload(let type):
            return Self.problem(of: aps, as: type) ?? problemOfSize(type, classes)
        case .record: return problemOfSize(nil, classes)
        case .nothing: return Self.untold("/aps")
        }
    }

    private static func untold(_ place: String) -> PushTemplateError {
        PushTemplateError(
            place: place,
            problem:
                "nothing says which type of push it is: write push.type, or alert, badge, sound, "
                + "content-available: 1, content-state, or event: end with a timestamp in aps")
    }

    private static func problem(
        of aps: [String: Known], as type: PushType
    ) -> PushTemplateError? {
        let interrupts = interruptions.filter { aps[$0]?.mayBeThere ?? false }
        switch type {
        case .alert where interrupts.isEmpty:
            return PushTemplateError(
                place: "/aps", problem: "an alert needs alert, badge or sound here")
        case .background:
            if let name = interrupts.first(where: { aps[$0]!.isThere }) {
                return PushTemplateError(
                    place: "/aps/\(name)",
                    problem: "a background push has none: leave it out, or write push.type: alert")
            }
            let available = aps["content-available"] ?? .absent
            guard available.isUnknown || available == .literal("1") else {
                return PushTemplateError(
                    place: "/aps", problem: "a background push needs content-available: 1 here")
            }
            return nil
        case .liveActivity: return problem(ofActivity: aps)
        default: return nil
        }
    }

    private static func problem(ofActivity aps: [String: Known]) -> PushTemplateError? {
        func wrong(_ name: String, _ demand: String) -> PushTemplateError {
            PushTemplateError(
                place: "/aps/\(name)", problem: "a Live Activity needs \(demand) here")
        }
        func known(_ name: String) -> Known { aps[name] ?? .absent }
        let event = known("event")
        switch event {
        case .unknown, .someText, .text("start"), .text("update"), .text("end"): break
        default: return wrong("event", "start, update or end")
        }
        let timestamp = known("timestamp")
        guard timestamp.mayBe(.integer), !timestamp.isNegativeOrZero else {
            return wrong("timestamp", "whole seconds since 1970, such as {time},")
        }
        let state = known("content-state")
        let mayEnd = event == .text("end") || event == .someText || event.isUnknown
        guard state.mayBe(.object) || mayEnd && state == .absent else {
            return wrong("content-state", "a map")
        }
        if event == .text("start") {
            guard known("attributes-type").mayBe(.string) else {
                return wrong("attributes-type", "a text, to start,")
            }
            guard known("attributes").mayBe(.object) else {
                return wrong("attributes", "a map, to start,")
            }
            guard known("alert").mayBeThere else { return wrong("alert", "an alert, to start,") }
        }
        for name in ["stale-date", "dismissal-date", "relevance-score"] {
            guard known(name) == .absent || known(name).mayBe(.number) else {
                return wrong(name, "a number")
            }
        }
        return nil
    }

    // MARK: Size

    private func problemOfSize(
        _ type: PushType?, _ classes: TokenClassSet
    ) -> PushTemplateError? {
        var most = type?.payloadBytesMax ?? PushType.allTypes.map(\.payloadBytesMax).max()!
        if let type, classes.contains(type.tokenClass) { most = type.row.bodyBytesMax }
        let bytes = root.constantBytes
        guard bytes > most else { return nil }
        return PushTemplateError(
            place: "",
            problem: "its constant parts have \(bytes) bytes, and APNs takes \(most)"
                + "\(type.map { " of type \($0.name)" } ?? ""): shorten them")
    }
}

extension PushTemplate.Known {
    fileprivate var isNegativeOrZero: Bool {
        if case .literal(let text) = self { Int64(text).map { $0 <= 0 } ?? false } else { false }
    }
}

extension PushTemplate.Node {
    /// A constant that no double holds, of which a phone refuses the whole payload.
    fileprivate var endlessNumber: String? {
        switch self {
        case .literal(let bytes): Self.endless(bytes)
        case .value(let value):
            if case .json(let bytes) = value.standIn { Self.endless(bytes) } else { nil }
        case .list(let nodes): nodes.lazy.compactMap(\.endlessNumber).first
        case .map(let members): members.lazy.compactMap(\.node.endlessNumber).first
        case .text: nil
        }
    }

    private static func endless(_ bytes: [UInt8]) -> String? {
        guard let first = bytes.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first)
        else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        return Double(text)?.isFinite ?? true ? nil : String(text.prefix(40))
    }

    /// The fewest bytes that it becomes, whatever the record holds.
    fileprivate var constantBytes: Int {
        switch self {
        case .literal(let bytes): bytes.count
        case .text(let parts):
            parts.reduce(2) { sum, part in
                if case .literal(let text) = part { sum + text.utf8.count } else { sum }
            }
        case .value: 0
        case .list(let nodes): nodes.reduce(2) { $0 + $1.constantBytes }
        case .map(let members):
            members.reduce(2) { sum, member in
                // Two quotes and a colon; a member whose value is left out is no part of it.
                if case .value = member.node { return sum }
                return sum + member.name.utf8.count + 3 + member.node.constantBytes
            }
        }
    }
}
