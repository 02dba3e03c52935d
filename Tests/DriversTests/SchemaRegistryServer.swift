// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import TestCertificates

/// The schema registry of `Tests/Schemas`, which ends with the test.
final class SchemaRegistryServer {
    struct Request: Decodable {
        var path: String
        var authorization: String?
    }

    private let server: PythonServer
    private let isTLS: Bool

    /// - Parameter schemas: a JSON array of what would be posted to the subject in each.
    init(
        _ schemas: String = "[]", isTLS: Bool = false, user: String? = nil, secret: String = ""
    ) throws {
        self.isTLS = isTLS
        let program = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Schemas/registry.py")
        server = try PythonServer(program: String(contentsOf: program, encoding: .utf8))
        try server.write(schemas, to: "schemas.json")
        let authority = try CertificateAuthority()
        let made = try authority.serverCertificate(
            names: ["localhost"], addresses: [], expired: false)
        for (name, text) in [
            ("ca.pem", authority.certificatePEM), ("cert.pem", made.certificatePEM),
            ("key.pem", made.keyPEM),
        ] { try server.write(text, to: name) }
        try server.start(environment: [
            "TLS": isTLS ? "1" : "", "USER_NAME": user ?? "", "SECRET": secret,
        ])
    }

    var url: String {
        isTLS ? "https://localhost:\(server.port)" : "http://127.0.0.1:\(server.port)"
    }
    var caFile: String { server.directory.file("ca.pem") }
    var requests: [Request] { server.requests() }

    /// - Parameters:
    ///   - path: what is answered otherwise.
    ///   - exception: how.
    func behave(_ words: String, of path: String? = nil, _ exception: String = "") {
        server.behave(words + (path.map { "\n\($0) \(exception)" } ?? ""))
    }
    func stop() { server.stop() }
}
