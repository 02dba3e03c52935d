// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import HTTPListener
internal import OpenSSL
internal import PushModel
internal import RecordFormats
internal import RegistrarRules
internal import Simdjson

/// One put or delete of a batch, and how many records it writes.
struct BatchItem: Sendable {
    typealias Parts = (
        key: InstallationKey, route: RegistrarRoute, method: HTTPRequest.Method, body: [UInt8],
        belowSequence: Int64?, records: Int
    )
    var result: Result<Parts, Problem>
}

/// Reads and writes the JSON of requests, records and answers, with a parser that it keeps.
///
/// SAFETY: the parser, and what it has parsed, are used under the lock alone.
final class BodyReader: @unchecked Sendable {
    private let lock = NSLock()
    private var parser = JSONParser(bytesMax: 4 << 20, depthMax: 16)

    /// Parses a body, and lends it to `read`.
    func read<Value>(
        _ body: [UInt8], _ read: (JSONObject) throws(InvalidMember) -> Value
    ) throws(Problem) -> Value {
        lock.lock()
        defer { lock.unlock() }
        let result = body.withUnsafeBytes { bytes in
            Result { () throws(InvalidMember) in
                try read(SnapshotReader.object(in: bytes, parser: &parser))
            }
        }
        do throws(InvalidMember) { return try result.get() } catch { throw Problem(error) }
    }

    // MARK: Writes

    /// The write of a handler, with the hash of its targets.
    func draft(
        _ key: InstallationKey, _ tokenClass: RegistrationClass, _ handler: String,
        _ targets: [RegistrationDraft.Target], sequence: Int64?
    ) -> RegistrationArbiter.Put {
        RegistrationArbiter.Put(
            key: key, handler: tokenClass.keyPart(of: handler), tokenClass: tokenClass,
            sequence: sequence, targets: targets)
    }

    /// The body of a write of one handler, for another replica.
    func body(of put: RegistrationArbiter.Put) -> [UInt8] {
        var draft = RegistrationDraft(
            environment: put.key.environment, app: put.key.app,
            installation: put.key.installation,
            handler: RegistrationClass.handler(keyPart: put.handler))
        draft.sequence = put.sequence
        return RegistrationEncoder.value(draft, targets: put.targets)
    }

    /// What an accepted write was answered with.
    func acceptance(
        in body: String
    ) throws(Problem) -> (isWritten: Bool, registeredAt: String?) {
        try read(Array(body.utf8)) { object throws(InvalidMember) in
            (
                object["written"]?.bool ?? true,
                object["registeredAt"]?.string.map { String(decoding: $0, as: UTF8.self) }
            )
        }
    }

    // MARK: Lists

    /// What another replica has of an installation.
    func list(in body: String) -> (partitions: Set<Int32>, handlers: [KeyOwners.Known])? {
        try? read(Array(body.utf8)) { object throws(InvalidMember) in
            let partitions = object["partitions"]?.array?.compactMap {
                $0.integer.flatMap { Int32(exactly: $0) }
            }
            let handlers = object["handlers"]?.array?.compactMap { element -> KeyOwners.Known? in
                guard let handler = element.object,
                    let keyPart = handler["keyPart"]?.string.map({
                        String(decoding: $0, as: UTF8.self)
                    })
                else { return nil }
                return KeyOwners.Known(
                    keyPart: keyPart,
                    tokenClass: handler["class"]?.string.flatMap {
                        RegistrationClass(rawValue: String(decoding: $0, as: UTF8.self))
                    },
                    sequence: handler["sequence"]?.integer.flatMap {
                        RegistrationArbiter.sequence($0)
                    },
                    content: handler["content"]?.string.flatMap {
                        UInt64(String(decoding: $0, as: UTF8.self), radix: 16)
                    })
            }
            return (Set(partitions ?? []), handlers ?? [])
        }
    }

    // MARK: Shown

    /// A record's value as a GET shows it: token IDs, never tokens.
    func shown(
        _ value: [UInt8], _ key: InstallationKey, _ keyPart: String,
        _ tokenClass: RegistrationClass?
    ) -> JSONText? {
        try? read(value) { object throws(InvalidMember) in
            var members: [(String, JSONText)] = [
                ("environment", .string(key.environment.name)), ("app", .string(key.app)),
                ("installation", .string(key.installation)),
                ("handler", .string(RegistrationClass.handler(keyPart: keyPart))),
            ]
            let targets = object["targets"]?.array.map(Array.init) ?? []
            let word = targets.first?.object?["class"]?.string
                .flatMap { TokenClass(name: String(decoding: $0, as: UTF8.self)) }
                .flatMap { RegistrationClass($0) }
            if let word = word ?? tokenClass { members.append(("class", .string(word.rawValue))) }
            let sequence = object["sequence"]?.integer.flatMap { RegistrationArbiter.sequence($0) }
            if let sequence {
                members.append(("sequence", .literal("\(sequence)")))
            }
            if let registeredAt = object["registeredAt"]?.string {
                members.append(
                    ("registeredAt", .string(String(decoding: registeredAt, as: UTF8.self))))
            }
            members.append(("targets", .array(targets.compactMap(Self.shown))))
            return .object(members)
        }
    }

    private static func shown(_ target: JSONValue) -> JSONText? {
        guard let object = target.object else { return nil }
        var members: [(String, JSONText)] = []
        for (name, value) in object {
            let name = String(decoding: name, as: UTF8.self)
            if name == "token" {
                guard let text = value.string,
                    let token = Hexadecimal.decode(String(decoding: text, as: UTF8.self))
                else { continue }
                members.append(("tokenID", .string(tokenID(token))))
            } else if ["class", "onChange", "pushToStart", "shows"].contains(name) {
                var text: [UInt8] = []
                guard value.minify(into: &text, bytesMax: 4 << 20) else { continue }
                members.append((name, .literal(String(decoding: text, as: UTF8.self))))
            }
        }
        return .object(members)
    }

    private static func tokenID(_ token: [UInt8]) -> String {
        Hexadecimal.encode(SHA256Digest.of(token).prefix(8))
    }

    // MARK: Batches

    func items(
        in body: [UInt8], _ environment: PushEnvironment, app: String, limits: RegistrarLimits
    ) throws(Problem) -> [BatchItem] {
        try read(body) { object throws(InvalidMember) in
            try RepeatedMember.check(object, at: "")
            guard let items = SnapshotReader.member(object, "items")?.array else {
                throw InvalidMember(
                    "/items", "items is missing", remedy: "send an array of puts and deletes")
            }
            var read: [BatchItem] = []
            for item in items {
                guard read.count < limits.itemsMax else {
                    throw InvalidMember(
                        "/items", "there are more than \(limits.itemsMax) items",
                        remedy: "send several batches")
                }
                let pointer = "/items/\(read.count)"
                do throws(InvalidMember) {
                    read.append(
                        BatchItem(
                            result: .success(
                                try Self.item(item, environment, app: app, at: pointer))))
                } catch {
                    read.append(BatchItem(result: .failure(Problem(error))))
                }
            }
            return read
        }
    }

    private static func item(
        _ value: JSONValue, _ environment: PushEnvironment, app: String, at pointer: String
    ) throws(InvalidMember) -> BatchItem.Parts {
        guard let object = value.object else {
            throw InvalidMember(pointer, "it is not an object", remedy: "send a put or a delete")
        }
        try RepeatedMember.check(within: value, at: pointer)
        func text(_ name: StaticString) -> String? {
            SnapshotReader.member(object, name)?.string.map { String(decoding: $0, as: UTF8.self) }
        }
        guard let method = text("method").map({ HTTPRequest.Method(rawValue: $0) }),
            method == .put || method == .delete
        else {
            throw InvalidMember(
                "\(pointer)/method", "method is neither PUT nor DELETE", remedy: "send one of them")
        }
        guard let installation = text("installation"), InstallationKey.isName(installation) else {
            throw InvalidMember(
                "\(pointer)/installation", "installation is not allowed",
                remedy: SnapshotReader.nameRemedy)
        }
        try refuseOtherMembers(object, of: method, at: pointer)
        let key = InstallationKey(environment: environment, app: app, installation: installation)
        let handler = text("handler")
        // What is no string must not count as left out: then more would be removed than was meant.
        guard handler != nil || SnapshotReader.member(object, "handler") == nil else {
            throw InvalidMember(
                "\(pointer)/handler", "handler is not a string", remedy: SnapshotReader.nameRemedy)
        }
        try SnapshotReader.checkRepeated(object, key, handler: handler, at: pointer)
        let below =
            method == .delete
            ? try SnapshotReader.sequence(object, "belowSequence", at: pointer) : nil
        if let handler, !RegistrationClass.isHandlerName(handler) {
            throw InvalidMember(
                "\(pointer)/handler", "handler is not allowed",
                remedy: RegistrationClass.handlerNameRemedy)
        }
        let word = text("class")
        guard let tokenClass = word.flatMap({ RegistrationClass(rawValue: $0) }) else {
            if SnapshotReader.member(object, "class") == nil, handler == nil, method == .delete {
                return (key, .installation(key), method, [], below, 1)
            }
            throw InvalidMember(
                "\(pointer)/class", "class is none of those there are",
                remedy: "send "
                    + RegistrationClass.allCases.map(\.rawValue).joined(separator: ", "))
        }
        let route: RegistrarRoute
        if let handler {
            route = .handler(key, tokenClass, handler)
        } else if tokenClass == .controls {
            route = .all(key, tokenClass)
        } else {
            route = .handler(key, tokenClass, RegistrationClass.defaultHandler)
        }
        let handlers = SnapshotReader.member(object, "handlers")?.object?.reduce(0) { count, _ in
            count + 1
        }
        return (
            key, route, method, try itemBody(object, method, at: pointer), below,
            max(1, handlers ?? 1)
        )
    }

    /// A mistyped member must not count as left out: then more would be removed or replaced than was
    /// meant.
    private static func refuseOtherMembers(
        _ object: JSONObject, of method: HTTPRequest.Method, at pointer: String
    ) throws(InvalidMember) {
        for (name, value) in object {
            let name = String(decoding: name, as: UTF8.self)
            if places.contains(name) { continue }
            let place = "\(pointer)/\(SnapshotReader.escaped(name))"
            let isOfPut = bodyMembers.contains(name)
            guard isOfPut || name == "belowSequence" else {
                throw InvalidMember(
                    place, "an item has no such member", remedy: "look for a misspelling")
            }
            guard isOfPut == (method == .put) || value.isNull else {
                throw InvalidMember(
                    place, "\(name) is not for a \(method.rawValue)",
                    remedy: isOfPut
                        ? "leave it out; a DELETE has belowSequence"
                        : "leave it out; a PUT has sequence")
            }
        }
    }

    /// The members that say what an item is about.
    private static let places: Set<String> = [
        "v", "method", "environment", "app", "installation", "class", "handler",
    ]
    /// The further members that the body of a single write has.
    private static let bodyMembers: Set<String> = ["sequence", "targets", "handlers"]

    /// The body of the single write that an item stands for.
    private static func itemBody(
        _ object: JSONObject, _ method: HTTPRequest.Method, at pointer: String
    ) throws(InvalidMember) -> [UInt8] {
        guard method == .put else { return [] }
        var body: [UInt8] = Array("{".utf8)
        for (name, value) in object {
            let name = String(decoding: name, as: UTF8.self)
            guard name == "v" || bodyMembers.contains(name) else { continue }
            if body.count > 1 { body.append(UInt8(ascii: ",")) }
            body += Array("\"\(name)\":".utf8)
            guard value.minify(into: &body, bytesMax: 1 << 20) else {
                throw InvalidMember(pointer, "it is too long", remedy: "send it by itself")
            }
        }
        return body + Array("}".utf8)
    }
}
