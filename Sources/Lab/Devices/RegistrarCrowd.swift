// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO
package import PushModel
package import RecordFormats
internal import Synchronization

/// Many phones that register with a registrar at once, each request for itself.
package struct RegistrarCrowd: Sendable {
    private let settings: RegistrarLine.Settings
    private let threads: Int

    package init(registrar: String, key: String, app: String, environment: PushEnvironment) {
        settings = RegistrarLine.Settings(
            registrar: registrar, key: key, app: app, environment: environment.name, caFile: nil)
        threads = 16
    }

    /// Registers each draft and returns when all are acknowledged.
    /// - Throws: `RegistrarRefusal` for the first that was not.
    package func register(_ drafts: [RegistrationDraft]) throws {
        let refusal = Mutex<RegistrarRefusal?>(nil)
        let ended = DispatchGroup()
        for thread in 0..<threads {
            ended.enter()
            try NamedThread.detach(name: "phones-\(thread)") {
                let line = RegistrarLine(settings)
                for index in stride(from: thread, to: drafts.count, by: threads) {
                    guard refusal.withLock({ $0 == nil }) else { break }
                    if let found = Self.register(drafts[index], line) {
                        refusal.withLock { $0 = $0 ?? found }
                    }
                }
                ended.leave()
            }
        }
        ended.wait()
        if let refusal = refusal.withLock({ $0 }) { throw refusal }
    }

    private static func register(
        _ draft: RegistrationDraft, _ line: RegistrarLine
    ) -> RegistrarRefusal? {
        let now = SystemClock.wallNanoseconds() / 1_000_000
        switch line.send(Device.Request(draft), of: draft.installation, sequence: now) {
        case .acknowledged: return nil
        case .refused(let status, let detail):
            return RegistrarRefusal(
                description: "the registrar answered \(status) to a registration: \(detail)")
        case .gaveUp:
            return RegistrarRefusal(description: "the registrar acknowledged nothing in a minute")
        }
    }
}

package struct RegistrarRefusal: Error, CustomStringConvertible {
    package let description: String
}

extension Device.Request {
    /// The request that registers one handler's targets, which are all of one class.
    init(_ draft: RegistrationDraft) {
        let word: String =
            switch draft.targets.first?.tokenClass {
            case .widget: "widgets"
            case .device: "device"
            case .liveActivity: "liveActivities"
            default: "controls"
            }
        method = "PUT"
        path = "/\(word)/\(draft.handler)"
        members = [("targets", .array(draft.targets.map(Self.target)))]
    }

    private static func target(_ target: RegistrationDraft.Target) -> JSONText {
        var members: [(String, JSONText)] = []
        if let token = target.token {
            members.append(("token", .string(Hexadecimal.encode(token))))
        }
        if target.hearsChanges, target.tokenClass == .device {
            members.append(("onChange", "background"))
        }
        let shows = target.shows.map { show -> JSONText in
            var members: [(String, JSONText)] = []
            if let kind = show.kind { members.append(("kind", .string(kind))) }
            members.append(("subjects", .array(show.subjects.map { .string($0) })))
            return .object(members)
        }
        return .object(members + [("shows", .array(shows))])
    }
}
