// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import PushModel

/// A request for curl to make; by default a valid push to a control.
struct CurlRequest {
    var method = "POST"
    var path = "/3/device/\(SimulatorFixture.token)"
    var environment = PushEnvironment.production
    /// In order, and as often as they stand here.
    var headers: [(name: String, value: String)]
    var body = #"{"aps":{"content-changed":true}}"#

    init(bearer: String? = SigningTeam.home.bearer()) {
        headers = [
            ("apns-push-type", "controls"),
            ("apns-topic", "\(SimulatorFixture.bundleID).push-type.controls"),
            ("apns-priority", "10"), ("apns-expiration", "0"),
        ]
        if let bearer { headers.append(("authorization", bearer)) }
    }

    func with(_ name: String, _ value: String?) -> CurlRequest {
        var changed = self
        changed.headers.removeAll { $0.name == name }
        if let value { changed.headers.append((name, value)) }
        return changed
    }

    func with(body: String) -> CurlRequest {
        var changed = self
        changed.body = body
        return changed
    }

    func with(path: String) -> CurlRequest {
        var changed = self
        changed.path = path
        return changed
    }

    func to(token: String) -> CurlRequest { with(path: "/3/device/\(token)") }
}

struct CurlAnswer: Equatable, CustomStringConvertible {
    /// 0 when there was no answer.
    let status: Int
    let body: String
    let apnsID: String
    let uniqueID: String
    let seconds: Double

    /// The reason in Apple's JSON; "" for another body.
    var reason: String {
        struct Body: Decodable { let reason: String }
        return (try? JSONDecoder().decode(Body.self, from: Data(body.utf8)))?.reason ?? ""
    }

    var description: String { "\(status) \(body)" }
}

extension SimulatorFixture {
    /// Makes the requests in turn with one curl process, on one connection per environment.
    /// - Parameter options: lines of curl's own configuration.
    func curl(_ requests: [CurlRequest], options: [String] = []) throws -> [CurlAnswer] {
        let marker = "\u{1}"
        let written =
            "\(marker)%{http_code}\(marker)%header{apns-id}\(marker)%header{apns-unique-id}"
            + "\(marker)%{time_total}\(marker)"
        var lines = options
        for (index, request) in requests.enumerated() {
            if index > 0 { lines.append("next") }
            let bodyFile = directory.appending(path: "body-\(index)")
            try Data(request.body.utf8).write(to: bodyFile)
            lines += [
                "silent", "http2", "max-time = 10", "cacert = \"\(caFile)\"",
                "url = \"\(url(request.path, request.environment))\"",
                "request = \"\(request.method)\"", "data-binary = \"@\(bodyFile.path)\"",
                "header = \"content-type:\"", "write-out = \"\(written)\"",
            ]
            lines += request.headers.map { "header = \"\($0.name): \($0.value)\"" }
        }
        let config = directory.appending(path: "curl-\(UUID().uuidString)")
        try lines.joined(separator: "\n").write(to: config, atomically: true, encoding: .utf8)
        let run = try ForeignProgram.run("curl", ["--config", config.path])
        let parts = run.output.components(separatedBy: marker)
        return stride(from: 0, to: parts.count - 4, by: 5).map { start in
            CurlAnswer(
                status: Int(parts[start + 1]) ?? 0, body: parts[start],
                apnsID: parts[start + 2], uniqueID: parts[start + 3],
                seconds: Double(parts[start + 4]) ?? 0)
        }
    }

    func curl(_ request: CurlRequest) throws -> CurlAnswer {
        try curl([request]).first
            ?? CurlAnswer(status: 0, body: "", apnsID: "", uniqueID: "", seconds: 0)
    }
}
