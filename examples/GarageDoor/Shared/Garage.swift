// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import LamplighterClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// This folder belongs to both targets, the app and the widget extension.

// lamplighter: one value for the app and its extension
extension Lamplighter {
    static let garage: Lamplighter = Lamplighter(
        registrar: URL(string: "https://push.example.com")!,
        appGroup: Garage.appGroup,
        credential: { _ in
            try await Garage.backend.pushCredential(for: Lamplighter.garage.client.installation())
        })
}
// end

enum Garage {
    static let appGroup = "group.com.example.garage"
    static let doorControlKind = "com.example.garage.door-control"
    static let doorWidgetKind = "com.example.garage.door-widget"
    static let messagesWidgetKind = "com.example.garage.messages-widget"
    static let backend = Backend(url: URL(string: "https://garage.example.com")!)

    /// What the app and the extension share. The app writes it, the extension reads it.
    static var defaults: UserDefaults { UserDefaults(suiteName: appGroup) ?? .standard }
}

struct Door: Codable, Hashable, Sendable, Identifiable {
    /// Also the subject of its events: the backend says that `door-42` has changed.
    var id: String
    var name: String
    var isOpen: Bool
}

struct Message: Codable, Hashable, Sendable, Identifiable {
    var id: String
    var title: String
}

/// The garage's own backend: it knows the doors and the user, and tells Kafka what has changed. The
/// README lists its paths.
struct Backend: Sendable {
    var url: URL

    func doors() async throws -> [Door] { try await get("doors") }
    func door(_ id: String) async throws -> Door { try await get("doors/\(id)") }
    func messages() async throws -> [Message] { try await get("messages") }

    func setDoor(_ id: String, isOpen: Bool) async throws {
        var request = request("doors/\(id)")
        request.httpMethod = "PUT"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = try JSONEncoder().encode(["isOpen": isOpen])
        _ = try await answer(to: request)
    }

    /// A short-lived token that lets this user's installations register the subjects of this user.
    func pushCredential(for installation: String) async throws -> String {
        struct Credential: Decodable { var token: String }
        let credential: Credential = try await get(
            "push-credential", [URLQueryItem(name: "installation", value: installation)])
        return credential.token
    }

    private func get<Value: Decodable>(
        _ path: String, _ query: [URLQueryItem] = []
    ) async throws -> Value {
        try JSONDecoder().decode(Value.self, from: await answer(to: request(path, query)))
    }

    private func request(_ path: String, _ query: [URLQueryItem] = []) -> URLRequest {
        var url = url.appendingPathComponent(path)
        if !query.isEmpty { url.append(queryItems: query) }
        var request = URLRequest(url: url)
        // However your app signs its user in; the extension must be able to read it too.
        let session = Garage.defaults.string(forKey: "session") ?? ""
        request.setValue("Bearer \(session)", forHTTPHeaderField: "Authorization")
        return request
    }

    private func answer(to request: URLRequest) async throws -> Data {
        let (body, response) = try await URLSession.shared.data(for: request)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else {
            throw URLError(.badServerResponse)
        }
        return body
    }
}
