// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// The topics of the known apps: each bundle identifier with each suffix. Immutable, and shared by
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
        /// Whether the body must have an `aps` object; other types have bodies of the app's own.
        let needsAPS: Bool
        /// The first type with the same suffix. Types that share a topic share its device tokens.
        let canonical: Int
    }

    let apps: [App]
    let rows: [Row]

    init(apps: [SimulatorApp], pushTypes: [SimulatorPushType] = []) {
        self.apps = apps.map { App(bundleID: Array($0.bundleID.utf8), teamID: $0.teamID) }
        precondition(
            PushEnvironment.allCases.allSatisfy { $0.rawValue < 2 },
            "an environment's number is 0 or 1, so it fits into one bit")
        let known = PushType.builtIn.map { row in
            Row(
                name: Array(row.name.utf8), suffix: Array(row.topicSuffix.utf8),
                bodyBytesMax: row.bodyBytesMax,
                needsAPS: !Self.classesOfOwnBody.contains(row.tokenClass),
                canonical: PushType.builtIn.firstIndex { $0.topicSuffix == row.topicSuffix } ?? 0)
        }
        rows =
            known
            + pushTypes.enumerated().map { number, type in
                Row(
                    name: Array(type.name.utf8), suffix: Array(type.topicSuffix.utf8),
                    bodyBytesMax: 4096, needsAPS: false, canonical: known.count + number)
            }
    }

    /// The classes whose bodies Apple leaves to the app, without `aps` keys.
    private static let classesOfOwnBody: Set<TokenClass> = [
        .voip, .complication, .pushToTalk, .fileProvider,
    ]

    func pushType(named name: UnsafeRawBufferPointer) -> Int? {
        rows.firstIndex { row in row.name.withUnsafeBytes { $0.equals(name) } }
    }

    enum Match {
        /// The topic belongs to this app, and its suffix means this push type.
        case topic(app: Int, type: Int)
        /// The app is known, but the suffix does not fit the push type.
        case wrongSuffix
        case unknown
    }

    /// Matches a topic with the known ones.
    ///
    /// - Parameter type: the push type of the request; nil if it has none, so that any suffix
    ///   matches.
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

    /// The owner of a device token as one number; the lowest bit is the environment.
    func owner(app: Int, type: Int, _ environment: PushEnvironment) -> UInt32 {
        assert(
            apps.indices.contains(app) && rows.indices.contains(type),
            "an owner's app and type are known to the book")
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
