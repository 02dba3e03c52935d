// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// The topics of the known apps: each bundle identifier with each suffix. Read only, one copy for
/// all threads.
struct TopicBook: Sendable {
    struct App: Sendable {
        let bundleID: [UInt8]
        let teamID: String
    }

    struct Row: Sendable {
        let name: [UInt8]
        let suffix: [UInt8]
        let bodyBytesMax: Int
        /// Its body has an `aps` object; the others' bodies are the app's own.
        let needsAPS: Bool
        /// The first type with the same suffix: types that share a topic share its tokens.
        let canonical: Int
    }

    let apps: [App]
    let rows: [Row]

    init(apps: [SimulatorApp]) {
        self.apps = apps.map { App(bundleID: Array($0.bundleID.utf8), teamID: $0.teamID) }
        precondition(
            PushEnvironment.allCases.allSatisfy { $0.rawValue < 2 }, "an environment has one bit")
        rows = PushType.all.map { row in
            Row(
                name: Array(row.name.utf8), suffix: Array(row.topicSuffix.utf8),
                bodyBytesMax: row.bodyBytesMax,
                needsAPS: !Self.classesOfOwnBody.contains(row.tokenClass),
                canonical: PushType.all.firstIndex { $0.topicSuffix == row.topicSuffix } ?? 0)
        }
    }

    /// Apple: app-defined keys, no `aps` interaction keys.
    private static let classesOfOwnBody: Set<TokenClass> = [
        .voip, .complication, .pushToTalk, .fileProvider,
    ]

    func pushType(named name: UnsafeRawBufferPointer) -> Int? {
        rows.firstIndex { row in row.name.withUnsafeBytes { $0.equals(name) } }
    }

    enum Match {
        /// The app, and the push type that the topic's suffix means.
        case topic(app: Int, type: Int)
        /// The app is known and the suffix is not the push type's.
        case wrongSuffix
        case unknown
    }

    /// - Parameter type: nil when the request names none; any suffix will do then.
    func match(_ topic: UnsafeRawBufferPointer, type: Int?) -> Match {
        var isOfApp = false
        for (index, app) in apps.enumerated() where Self.hasPrefix(topic, app.bundleID) {
            let rest = UnsafeRawBufferPointer(rebasing: topic[app.bundleID.count...])
            if let type {
                if has(suffix: rest, of: type) { return .topic(app: index, type: type) }
            } else if let type = rows.indices.first(where: { has(suffix: rest, of: $0) }) {
                return .topic(app: index, type: type)
            }
            if rest.isEmpty || rows.indices.contains(where: { has(suffix: rest, of: $0) }) {
                isOfApp = true
            }
        }
        return isOfApp ? .wrongSuffix : .unknown
    }

    /// Whose a device token is, as one number; the lowest bit is the environment's.
    func owner(app: Int, type: Int, _ environment: PushEnvironment) -> UInt32 {
        assert(apps.indices.contains(app) && rows.indices.contains(type), "an owner that is none")
        return UInt32((app * rows.count + rows[type].canonical) * 2 + Int(environment.rawValue))
    }

    private func has(suffix: UnsafeRawBufferPointer, of type: Int) -> Bool {
        rows[type].suffix.withUnsafeBytes { $0.equals(suffix) }
    }

    private static func hasPrefix(_ text: UnsafeRawBufferPointer, _ prefix: [UInt8]) -> Bool {
        guard text.count >= prefix.count else { return false }
        return prefix.withUnsafeBytes {
            $0.equals(UnsafeRawBufferPointer(rebasing: text[..<prefix.count]))
        }
    }
}
