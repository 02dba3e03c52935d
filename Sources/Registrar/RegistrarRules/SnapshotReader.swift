// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
package import RecordFormats
package import Simdjson

/// Reads the bodies of writes. A member that is wrong or not known is named by its JSON pointer, with what
/// to do: a mistyped one must not count as left out.
package struct SnapshotReader {
    /// What a body says that one path or one item of a batch gives.
    package struct Snapshot {
        package var sequence: Int64?
        package var handlers: [(name: String, targets: [RegistrationDraft.Target])]
    }

    private let limits: RegistrarLimits

    package init(limits: RegistrarLimits = RegistrarLimits()) { self.limits = limits }

    // MARK: Documents

    /// The body's object.
    package static func object(
        in body: UnsafeRawBufferPointer, parser: inout JSONParser
    ) throws(InvalidMember) -> JSONObject {
        let value: JSONValue
        do throws(JSONError) {
            value = try parser.parse(body)
        } catch {
            throw InvalidMember(
                "", "the body is not JSON: \(error.message)",
                remedy: "send one JSON object in UTF-8")
        }
        guard let object = value.object else {
            throw InvalidMember("", "the body is not an object", remedy: "send one JSON object")
        }
        return object
    }

    /// The snapshot of one handler: `{"sequence":17,"targets":[…]}`.
    package func snapshot(
        _ object: JSONObject, of key: InstallationKey, _ tokenClass: RegistrationClass,
        handler: String, at pointer: String = ""
    ) throws(InvalidMember) -> Snapshot {
        try RepeatedMember.check(within: object.value, at: pointer)
        try Self.refuseOthers(in: object, than: Self.snapshotMembers, at: pointer)
        try Self.checkRepeated(object, key, handler: handler, at: pointer)
        guard Self.member(object, "handlers") == nil else {
            throw InvalidMember(
                "\(pointer)/handlers", "handlers is not for one handler",
                remedy: "send targets, or PUT the complete set")
        }
        guard let targets = Self.member(object, "targets") else {
            throw InvalidMember(
                "\(pointer)/targets", "targets is missing",
                remedy: "send an array; an empty one says that nothing is left")
        }
        return Snapshot(
            sequence: try Self.sequence(object, "sequence", at: pointer),
            handlers: [
                (handler, try read(targets, tokenClass, at: "\(pointer)/targets"))
            ])
    }

    /// The complete set of an installation's controls: `{"sequence":18,"handlers":{"A":[…]}}`, or
    /// `targets` for the default handler alone.
    package func completeSet(
        _ object: JSONObject, of key: InstallationKey, at pointer: String = ""
    ) throws(InvalidMember) -> Snapshot {
        guard let handlers = Self.member(object, "handlers") else {
            guard Self.member(object, "targets") != nil else {
                throw InvalidMember(
                    "\(pointer)/handlers", "handlers is missing",
                    remedy: "send an object of handlers' names, each with an array of targets, or "
                        + "targets for the default handler")
            }
            return try snapshot(
                object, of: key, .controls, handler: RegistrationClass.defaultHandler, at: pointer)
        }
        try RepeatedMember.check(within: object.value, at: pointer)
        try Self.refuseOthers(in: object, than: Self.snapshotMembers, at: pointer)
        try Self.checkRepeated(object, key, handler: nil, at: pointer)
        guard Self.member(object, "targets") == nil else {
            throw InvalidMember(
                "\(pointer)/targets", "there is both handlers and targets",
                remedy: "send one of them")
        }
        guard let members = handlers.object else {
            throw InvalidMember(
                "\(pointer)/handlers", "handlers is not an object",
                remedy: #"send an object such as {"GarageControls":[…]}"#)
        }
        var snapshot = Snapshot(
            sequence: try Self.sequence(object, "sequence", at: pointer), handlers: [])
        for (name, value) in members {
            let name = String(decoding: name, as: UTF8.self)
            let place = "\(pointer)/handlers/\(Self.escaped(name))"
            guard RegistrationClass.isHandlerName(name) else {
                throw InvalidMember(
                    place, "a handler's name is not allowed",
                    remedy: RegistrationClass.handlerNameRemedy)
            }
            guard snapshot.handlers.count < limits.handlersMax else {
                throw InvalidMember(
                    "\(pointer)/handlers", "there are more than \(limits.handlersMax) handlers",
                    remedy: "an app has one for each type that conforms to ControlPushHandler")
            }
            snapshot.handlers.append((name, try read(value, .controls, at: place)))
        }
        return snapshot
    }

    package static let nameRemedy =
        "use 1 to 128 of A-Z a-z 0-9 . _ ~ -; . and .. have a meaning of their own in paths"

    /// A member; nil if it is absent or null.
    package static func member(_ object: JSONObject, _ name: StaticString) -> JSONValue? {
        guard let value = object[name], !value.isNull else { return nil }
        return value
    }

    /// A name within a JSON pointer.
    package static func escaped(_ name: String) -> String {
        String(
            name.unicodeScalars.reduce(into: "") { text, scalar in
                switch scalar {
                case "~": text += "~0"
                case "/": text += "~1"
                default: text.unicodeScalars.append(scalar)
                }
            }.prefix(200))
    }

    // MARK: Members

    /// Those of a snapshot and of a complete set; the first six repeat what the path says. The time is the
    /// registrar's, and is left to it.
    private static let snapshotMembers: Set<String> = [
        "v", "environment", "app", "installation", "class", "handler", "sequence", "registeredAt",
        "targets", "handlers",
    ]
    private static let targetMembers: Set<String> = [
        "class", "token", "onChange", "pushToStart", "shows",
    ]
    private static let showMembers: Set<String> = ["kind", "subjects"]

    private static func refuseOthers(
        in object: JSONObject, than known: Set<String>, at pointer: String
    ) throws(InvalidMember) {
        for (name, value) in object where !value.isNull {
            let name = String(decoding: name, as: UTF8.self)
            guard known.contains(name) else {
                throw InvalidMember(
                    "\(pointer)/\(escaped(name))", "there is no such member here",
                    remedy: "look for a misspelling")
            }
        }
    }

    package static func sequence(
        _ object: JSONObject, _ name: StaticString, at pointer: String
    ) throws(InvalidMember) -> Int64? {
        guard let value = member(object, name) else { return nil }
        // 17.0 is an integer to JSON Schema.
        let whole = value.double.flatMap { Int64(exactly: $0) }
        guard let sequence = value.integer ?? whole,
            (0...RegistrationArbiter.sequenceMax).contains(sequence)
        else {
            throw InvalidMember(
                "\(pointer)/\(name)", "\(name) is not an integer from 0 to 2^53 - 1",
                remedy: "count up with each snapshot")
        }
        return sequence
    }

    /// Members that repeat a part of the path must agree with it.
    package static func checkRepeated(
        _ object: JSONObject, _ key: InstallationKey, handler: String?, at pointer: String
    ) throws(InvalidMember) {
        if let version = member(object, "v"), version.integer != RecordLimits.version {
            throw InvalidMember(
                "\(pointer)/v", "v is not 1", remedy: "leave it out, or write 1")
        }
        func check(_ name: String, _ value: JSONValue?, _ expected: [String])
            throws(InvalidMember)
        {
            guard let value else { return }
            let text = value.string.map { String(decoding: $0, as: UTF8.self) }
            guard let text, expected.contains(text) else {
                throw InvalidMember(
                    "\(pointer)/\(name)", "\(name) is not that of the request",
                    remedy: "leave it out, or repeat what the path says")
            }
        }
        let environments =
            key.environment == .development ? ["development", "sandbox"] : ["production"]
        try check("environment", member(object, "environment"), environments)
        try check("app", member(object, "app"), [key.app])
        try check("installation", member(object, "installation"), [key.installation])
        if let handler { try check("handler", member(object, "handler"), [handler]) }
    }

    private func read(
        _ value: JSONValue, _ tokenClass: RegistrationClass, at pointer: String
    ) throws(InvalidMember) -> [RegistrationDraft.Target] {
        guard let elements = value.array else {
            throw InvalidMember(pointer, "it is not an array", remedy: "send an array of targets")
        }
        var targets: [RegistrationDraft.Target] = []
        var subjects = 0
        for element in elements {
            let place = "\(pointer)/\(targets.count)"
            guard targets.count < limits.targetsMax else {
                throw InvalidMember(
                    pointer, "there are more than \(limits.targetsMax) targets",
                    remedy: "split them by handler")
            }
            targets.append(try target(element, tokenClass, at: place))
            // One that names a kind alone takes as much of a worker as one with a subject.
            subjects += max(1, targets.last!.shows.reduce(0) { $0 + max(1, $1.subjects.count) })
            guard subjects <= limits.subjectsMax else {
                throw InvalidMember(
                    pointer, "there are more than \(limits.subjectsMax) subjects",
                    remedy: "split them by handler")
            }
        }
        return targets
    }

    private func target(
        _ value: JSONValue, _ tokenClass: RegistrationClass, at pointer: String
    ) throws(InvalidMember) -> RegistrationDraft.Target {
        guard let object = value.object else {
            throw InvalidMember(pointer, "it is not an object", remedy: "send a target")
        }
        try Self.refuseOthers(in: object, than: Self.targetMembers, at: pointer)
        let word = tokenClass.tokenClass.name
        if let named = Self.member(object, "class"), named.string?.elementsEqual(word.utf8) != true
        {
            throw InvalidMember(
                "\(pointer)/class", "class is not \(word), which the path says",
                remedy: "leave it out, or use the path of its class")
        }
        var target = RegistrationDraft.Target(
            tokenClass: tokenClass.tokenClass, token: try token(object, tokenClass, at: pointer),
            shows: [])
        if let onChange = Self.member(object, "onChange") {
            guard tokenClass == .device, onChange.string?.equals("background") == true else {
                throw InvalidMember(
                    "\(pointer)/onChange",
                    tokenClass == .device
                        ? "onChange is not background" : "only a device has onChange",
                    remedy: "leave it out, or write background for a device that a change wakes")
            }
            target.hearsChanges = true
        }
        if let pushToStart = Self.member(object, "pushToStart") {
            guard tokenClass == .liveActivities, let flag = pushToStart.bool else {
                throw InvalidMember(
                    "\(pointer)/pushToStart",
                    tokenClass == .liveActivities
                        ? "pushToStart is neither true nor false"
                        : "only a Live Activity has pushToStart",
                    remedy: "leave it out, or write true for the token that starts activities")
            }
            target.hearsChanges = flag
        }
        guard let shows = Self.member(object, "shows") else { return target }
        guard let elements = shows.array else {
            throw InvalidMember(
                "\(pointer)/shows", "shows is not an array",
                remedy: #"send an array such as [{"kind":"…","subjects":["door-42"]}]"#)
        }
        for element in elements {
            guard target.shows.count < limits.subjectsMax else {
                throw InvalidMember(
                    "\(pointer)/shows", "there are more than \(limits.subjectsMax) kinds",
                    remedy: "split them by handler")
            }
            target.shows.append(try show(element, at: "\(pointer)/shows/\(target.shows.count)"))
        }
        return target
    }

    private func token(
        _ object: JSONObject, _ tokenClass: RegistrationClass, at pointer: String
    ) throws(InvalidMember) -> [UInt8]? {
        guard let value = Self.member(object, "token") else {
            guard tokenClass == .controls else {
                throw InvalidMember(
                    "\(pointer)/token", "token is missing",
                    remedy: "only a control can be without one yet")
            }
            return nil
        }
        let bytes = value.string.map { String(decoding: $0, as: UTF8.self) }
            .flatMap { Hexadecimal.decode($0) }
        guard let bytes, (1...RecordLimits.tokenBytesMax).contains(bytes.count) else {
            throw InvalidMember(
                "\(pointer)/token", "token is not hexadecimal",
                remedy: "write the token's bytes as an even number of hexadecimal digits, "
                    + "\(2 * RecordLimits.tokenBytesMax) at most")
        }
        return bytes
    }

    private func show(
        _ value: JSONValue, at pointer: String
    ) throws(InvalidMember) -> RegistrationDraft.Show {
        guard let object = value.object else {
            throw InvalidMember(
                pointer, "it is not an object", remedy: "send an object of kind and subjects")
        }
        try Self.refuseOthers(in: object, than: Self.showMembers, at: pointer)
        var show = RegistrationDraft.Show(kind: nil, subjects: [])
        if let kind = Self.member(object, "kind") {
            show.kind = try text(kind, RecordLimits.kindBytes, "kind", at: "\(pointer)/kind")
        }
        guard let subjects = Self.member(object, "subjects") else { return show }
        guard let elements = subjects.array else {
            throw InvalidMember(
                "\(pointer)/subjects", "subjects is not an array",
                remedy: "send an array of strings")
        }
        for element in elements {
            guard show.subjects.count < limits.subjectsMax else {
                throw InvalidMember(
                    "\(pointer)/subjects", "there are more than \(limits.subjectsMax) subjects",
                    remedy: "split them by handler")
            }
            show.subjects.append(
                try text(
                    element, RecordLimits.subjectBytes, "a subject",
                    at: "\(pointer)/subjects/\(show.subjects.count)"))
        }
        return show
    }

    private func text(
        _ value: JSONValue, _ bytes: ClosedRange<Int>, _ what: String, at pointer: String
    ) throws(InvalidMember) -> String {
        guard let text = value.string, bytes.contains(text.count) else {
            throw InvalidMember(
                pointer,
                "\(what) is not a string of \(bytes.lowerBound) to \(bytes.upperBound) bytes",
                remedy: "send a string of that length")
        }
        return String(decoding: text, as: UTF8.self)
    }
}
