// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import RegistrarRules
internal import Simdjson

/// The path of a request to the registrar.
enum RegistrarPathsTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        guard let route = try? RegistrarRoute(path: String(decoding: input, as: UTF8.self)) else {
            return
        }
        switch route {
        case .installation(let key), .all(let key, _), .challenge(let key), .attestation(let key):
            try RegistrarBodiesTarget.promiseKey(key, "Garage")
        case .handler(let key, let tokenClass, let handler):
            try RegistrarBodiesTarget.promiseKey(key, tokenClass.keyPart(of: handler))
        case .batch(_, let app):
            try promise(RecordKey.isPart(app), "an app that no record has")
        case .openAPI: break
        }
    }
}

/// The body of a write to the registrar: as a snapshot of each class, and as a complete set. What is
/// accepted becomes a record that every reader reads, and whose summary is that of what was written.
enum RegistrarBodiesTarget {
    static let key = InstallationKey(
        environment: .production, app: "com.example.Home", installation: "6F1C")

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var parser = JSONParser(bytesMax: 4 << 20, depthMax: 16)
        for tokenClass in RegistrationClass.allCases {
            try check(tokenClass) { () throws(InvalidMember) in
                try SnapshotReader().snapshot(
                    SnapshotReader.object(in: input, parser: &parser), of: key, tokenClass,
                    handler: "Garage")
            }
        }
        try check(.controls) { () throws(InvalidMember) in
            try SnapshotReader().completeSet(
                SnapshotReader.object(in: input, parser: &parser), of: key)
        }
    }

    private static func check(
        _ tokenClass: RegistrationClass,
        _ read: () throws(InvalidMember) -> SnapshotReader.Snapshot
    ) throws {
        let snapshot: SnapshotReader.Snapshot
        do throws(InvalidMember) {
            snapshot = try read()
        } catch {
            try promiseLine(error.detail)
            try promiseLine(error.remedy)
            return
        }
        let limits = RegistrarLimits()
        try promise(snapshot.handlers.count <= limits.handlersMax, "too many handlers")
        for handler in snapshot.handlers {
            try promiseRecord(handler.name, handler.targets, snapshot.sequence, tokenClass)
        }
    }

    private static func promiseRecord(
        _ handler: String, _ targets: [RegistrationDraft.Target], _ sequence: Int64?,
        _ tokenClass: RegistrationClass
    ) throws {
        let keyPart = tokenClass.keyPart(of: handler)
        try promiseKey(key, keyPart)
        var draft = RegistrationDraft(
            environment: key.environment, app: key.app, installation: key.installation,
            handler: keyPart)
        draft.sequence = sequence
        draft.targets = targets
        let value = RegistrationEncoder.value(draft)
        var parser = JSONParser(bytesMax: 4 << 20, depthMax: 16)
        let summary = value.withUnsafeBytes { RegistrationSummary(value: $0, parser: &parser) }
        try promise(summary != nil, "a record that the registrar cannot read")
        try promise(summary?.sequence == sequence, "a record with another sequence")
        let written = targets.isEmpty ? nil : tokenClass
        try promise(summary?.tokenClass == written, "a record of another class")
        draft.sequence = sequence.map { $0 / 2 }
        let other = RegistrationEncoder.value(draft)
        let again = other.withUnsafeBytes { RegistrationSummary(value: $0, parser: &parser) }
        try promise(again?.content == summary?.content, "the same targets with another hash")
    }

    static func promiseKey(_ key: InstallationKey, _ handler: String) throws {
        let bytes = key.recordKey(handler: handler)
        let read = bytes.withUnsafeBytes { InstallationKey.read(recordKey: $0) }
        try promise(read?.key == key && read?.handler == handler, "a key that reads as another")
    }
}
