// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import OpenSSL
import PushModel
import Synchronization

@testable import RegistrarAccess

/// A folder of one test, removed at its end.
final class AccessFolder: Sendable {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = url.path
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file, in place of any former one, and returns its path.
    @discardableResult
    func write(_ text: String, _ name: String) throws -> String {
        try text.write(toFile: file(name), atomically: true, encoding: .utf8)
        return file(name)
    }

    func file(_ name: String) -> String { path + "/" + name }
}

/// What the registrar would log.
final class RecordedNotices: Sendable {
    private let notices = Mutex<[AccessNotice]>([])

    var faults: [String] { notices.withLock { $0.filter(\.isFault).map(\.text) } }
    var texts: [String] { notices.withLock { $0.map(\.text) } }

    func record(_ notice: AccessNotice) { notices.withLock { $0.append(notice) } }
}

enum AccessFixture {
    static let now = WallTime(rfc3339: "2026-11-23T12:00:00Z")!
    static let app = "com.example.Home"
    static let team = "A1B2C3D4E5"
    static let installation = "6F1C"
    static let subject = AttestationSubject(
        app: app, environment: .production, installation: installation)

    /// A PUT of the installation's controls.
    static func request(
        _ authorization: String..., method: String = "PUT", app: String = app,
        environment: PushEnvironment = .production, installation: String? = installation,
        handler: String = "controls/Garage", body: String = "{}"
    ) -> AccessRequest {
        let base = "/v1/apps/\(app)/environments/\(environment.name)"
        return AccessRequest(
            method: method,
            path: installation.map { "\(base)/installations/\($0)/\(handler)" } ?? base + "/batch",
            authorization: authorization, body: Array(body.utf8), app: app,
            environment: environment, installation: installation)
    }
}

extension Result where Success == Caller, Failure == AccessRefusal {
    var caller: Caller? { try? get() }

    var problem: AccessRefusal.Problem? {
        guard case .failure(let refusal) = self else { return nil }
        return refusal.problem
    }
}

extension Result where Failure == AccessRefusal {
    var refusal: AccessRefusal? {
        guard case .failure(let refusal) = self else { return nil }
        return refusal
    }
}
