// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import OpenSSL
import TestCertificates

@testable import KafkaLog

/// An OAuth 2.0 token endpoint on Python's HTTP server, which knows one client and gives it
/// numbered JSON Web Tokens. It ends with the test.
final class KafkaTokenEndpoint {
    static let clientID = "lamp lighter/1"
    static let secret = "s3cret: with+signs&more%"
    static let scope = "kafka:read kafka:write"

    private let server: PythonServer
    private let isTLS: Bool

    /// What it does with a request of the client that it knows.
    enum Behaviour: CustomStringConvertible {
        case token(life: Int)
        case status(Int)
        /// 200, and this as the body.
        case text(String)
        case megabytes(Int)
        case silence

        var description: String {
            switch self {
            case .token(let life): "token \(life)"
            case .status(let status): "status \(status)"
            case .text(let text): "text \(text)"
            case .megabytes(let count): "megabytes \(count)"
            case .silence: "silence"
            }
        }
    }

    /// - Parameter isTLS: with a certificate for `localhost` alone.
    init(
        _ behaviour: Behaviour = .token(life: 3600), isTLS: Bool = false, isExpired: Bool = false
    ) throws {
        server = try PythonServer(program: Self.program)
        self.isTLS = isTLS
        let authority = try CertificateAuthority()
        let made = try authority.serverCertificate(
            names: ["localhost"], addresses: [], expired: isExpired)
        for (name, text) in [
            ("ca.pem", authority.certificatePEM), ("cert.pem", made.certificatePEM),
            ("key.pem", made.keyPEM),
        ] { try server.write(text, to: name) }
        behave(behaviour)
        try start()
    }

    /// On the port that it had, if it has been started before.
    func start() throws {
        try server.start(environment: [
            "CLIENT_ID": Self.clientID, "CLIENT_SECRET": Self.secret, "SCOPE": Self.scope,
            "TLS": isTLS ? "1" : "",
        ])
    }

    func stop() { server.stop() }

    func behave(_ behaviour: Behaviour) { server.behave(behaviour) }

    var port: Int { server.port }

    var url: String { isTLS ? "https://localhost:\(port)/token" : "http://127.0.0.1:\(port)/token" }

    var caFile: String { server.directory.file("ca.pem") }

    /// What a user would write, without `security.protocol` and `sasl.mechanisms`.
    func properties(_ changes: [String: String] = [:]) -> [String: String] {
        var properties = [
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.client.id": Self.clientID,
            "sasl.oauthbearer.client.secret": Self.secret,
            "sasl.oauthbearer.scope": Self.scope,
            "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,poolID=pool-7",
        ]
        if isTLS { properties["https.ca.location"] = caFile }
        return properties.merging(changes) { $1 }
    }

    /// The properties above with what makes Kafka's clients use them.
    func kafkaProperties(_ changes: [String: String] = [:]) -> [String: String] {
        properties(["security.protocol": "sasl_plaintext", "sasl.mechanisms": "OAUTHBEARER"])
            .merging(changes) { $1 }
    }

    struct Request: Decodable {
        /// Seconds since 1970.
        var time: Double
        var isInOrder: Bool
        /// What was given, and until when it holds; 0 for none.
        var token: String
        var expiresAt: Double
    }

    /// All that have come, in order.
    var requests: [Request] { server.requests() }

    private static let program = #"""
        import base64, http.server, json, os, ssl, sys, threading, time, urllib.parse

        folder = sys.argv[1]
        quoted = [urllib.parse.quote_plus(os.environ[n]) for n in ("CLIENT_ID", "CLIENT_SECRET")]
        basic = "Basic " + base64.b64encode(":".join(quoted).encode()).decode()
        form = {"grant_type": ["client_credentials"], "scope": [os.environ["SCOPE"]]}
        given = 0

        def segment(value):
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        class Endpoint(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                global given
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                in_order = (self.path == "/token" and self.headers["authorization"] == basic
                    and self.headers["content-type"] == "application/x-www-form-urlencoded"
                    and self.headers["accept"] == "application/json"
                    and urllib.parse.parse_qs(body) == form)
                with open(folder + "/behaviour") as file:
                    behaviour, _, argument = file.read().partition(" ")
                entry = {"time": time.time(), "isInOrder": in_order, "token": "", "expiresAt": 0}
                status, answer = 200, b""
                if not in_order or behaviour == "status":
                    status = int(argument) if in_order else 401
                    answer = json.dumps({"error": "invalid_client",
                        "error_description": "the secret was " + os.environ["CLIENT_SECRET"]}).encode()
                elif behaviour == "token":
                    given += 1
                    entry["expiresAt"] = int(time.time()) + int(argument)
                    entry["token"] = ".".join([segment({"alg": "RS256"}),
                        segment({"sub": "worker", "exp": entry["expiresAt"], "jti": given}), "c2ln"])
                    answer = json.dumps({"access_token": entry["token"], "token_type": "Bearer",
                        "expires_in": int(argument)}).encode()
                elif behaviour == "text":
                    answer = argument.encode()
                elif behaviour == "megabytes":
                    answer = b"x" * (int(argument) << 20)
                with open(folder + "/requests", "a") as file:
                    file.write(json.dumps(entry) + "\n")
                if behaviour == "silence":
                    time.sleep(60)
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments):
                pass

        try:
            with open(folder + "/port") as file:
                port = int(file.read())
        except FileNotFoundError:
            port = 0
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Endpoint)
        if os.environ["TLS"]:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        with open(folder + "/port.new", "w") as file:
            file.write(str(server.server_address[1]))
        os.rename(folder + "/port.new", folder + "/port")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        """#
}
