// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// The backend of the garage door app. ../../../README.md lists its paths, its settings and what is left
// out.

import CRdkafka
import CSQLite
import Crypto
import Foundation
import Hummingbird

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

let app = "com.example.garage"
/// The registrar takes 256 KiB: one batch is at most what was gathered, and one body on top of it.
let bodyBytesMax = 128 << 10
let gatheredBytesMax = 64 << 10

let schema = [
    "CREATE TABLE IF NOT EXISTS doors (id TEXT PRIMARY KEY, name TEXT NOT NULL, isOpen INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, user TEXT NOT NULL, title TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS installations (id TEXT PRIMARY KEY, user TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS outbox "
        + "(id INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL, event TEXT NOT NULL)",
    "INSERT OR IGNORE INTO doors VALUES ('door-42', 'Left', 0), ('door-43', 'Right', 0)",
]

struct Settings {
    let environment = ProcessInfo.processInfo.environment

    subscript(name: String) -> String {
        guard let text = environment[name] else { fatalError("\(name) is not set") }
        return text
    }

    /// However your users sign in; here the sessions are given: "TOKEN=USER,TOKEN=USER".
    var sessions: [String: String] {
        let pairs = self["SESSIONS"].split(separator: ",").map {
            $0.split(separator: "=").map(String.init)
        }
        return Dictionary(uniqueKeysWithValues: pairs.map { ($0[0], $0[1]) })
    }

    func file(_ name: String) throws -> String {
        try String(contentsOfFile: self[name], encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

// MARK: State and events

/// A connection to SQLite. Values go in and come out as text.
final class Database {
    struct Failure: Error {
        var text: String
    }

    private var connection: OpaquePointer?

    init(path: String) throws {
        guard sqlite3_open(path, &connection) == SQLITE_OK else { throw failure }
        sqlite3_busy_timeout(connection, 10000)
        try rows("PRAGMA journal_mode = WAL")
        // FULL: a commit is on the disk, so that it survives a power failure too.
        try rows("PRAGMA synchronous = FULL")
    }

    deinit { sqlite3_close(connection) }

    @discardableResult
    func rows(_ sql: String, _ values: String...) throws -> [[String]] {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else {
            throw failure
        }
        defer { sqlite3_finalize(statement) }
        // SQLITE_TRANSIENT, a macro that Swift does not see: SQLite copies the text.
        let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        for (number, value) in values.enumerated() {
            sqlite3_bind_text(statement, Int32(number + 1), value, Int32(value.utf8.count), copies)
        }
        var rows: [[String]] = []
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                rows.append(
                    (0..<sqlite3_column_count(statement)).map {
                        String(cString: sqlite3_column_text(statement, $0))
                    })
            case SQLITE_DONE: return rows
            default: throw failure
            }
        }
    }

    func transaction<Value>(_ body: () throws -> Value) throws -> Value {
        try rows("BEGIN IMMEDIATE")
        do {
            let value = try body()
            try rows("COMMIT")
            return value
        } catch {
            _ = try? rows("ROLLBACK")
            throw error
        }
    }

    private var failure: Failure { Failure(text: String(cString: sqlite3_errmsg(connection))) }
}

struct Door: ResponseCodable {
    var id: String
    var name: String
    var isOpen: Bool
}

struct Message: ResponseCodable {
    var id: String
    var title: String
}

actor Garage {
    private let database: Database
    private let users: Set<String>

    init(_ settings: Settings) throws {
        database = try Database(path: settings["DATABASE"])
        users = Set(settings.sessions.values)
        for statement in schema { try database.rows(statement) }
    }

    // state-and-event: both or neither
    func setDoor(_ id: String, isOpen: Bool) throws -> Door {
        let door = try database.transaction {
            guard let row = try database.rows("SELECT name FROM doors WHERE id = ?", id).first
            else {
                throw HTTPError(.notFound, message: "there is no such door")
            }
            try database.rows("UPDATE doors SET isOpen = ? WHERE id = ?", isOpen ? "1" : "0", id)
            try addEvent(id)
            for user in users {
                let title = "\(row[0]) door \(isOpen ? "opened" : "closed")"
                try database.rows("INSERT INTO messages (user, title) VALUES (?, ?)", user, title)
                try addEvent("user/\(user)/messages")
            }
            return Door(id: id, name: row[0], isOpen: isOpen)
        }
        Relay.wake.signal()
        return door
    }

    private func addEvent(_ subject: String) throws {
        let event = Event(v: 1, id: UUID().uuidString, time: Date().ISO8601Format(), app: app)
        let text = String(decoding: try JSONEncoder().encode(event), as: UTF8.self)
        try database.rows("INSERT INTO outbox (subject, event) VALUES (?, ?)", subject, text)
    }
    // end

    private struct Event: Encodable {
        var v: Int
        var id: String
        var time: String
        var app: String
    }

    func doors() throws -> [Door] {
        try database.rows("SELECT id, name, isOpen FROM doors ORDER BY id").map {
            Door(id: $0[0], name: $0[1], isOpen: $0[2] == "1")
        }
    }

    func messages(of user: String) throws -> [Message] {
        try database.rows(
            "SELECT id, title FROM messages WHERE user = ? ORDER BY id DESC LIMIT 50", user
        ).map { Message(id: $0[0], title: $0[1]) }
    }

    /// Installations are random and secret; the first user who names one has it.
    ///
    /// - Returns: The user's installations, the newest first.
    func own(_ installation: String, user: String) throws -> [String] {
        guard installation.wholeMatch(of: /[A-Za-z0-9._~\-]{1,128}/) != nil else {
            throw HTTPError(.badRequest, message: "name the installation: ?installation=…")
        }
        try database.rows("INSERT OR IGNORE INTO installations VALUES (?, ?)", installation, user)
        let owner = try database.rows("SELECT user FROM installations WHERE id = ?", installation)
        guard owner == [[user]] else {
            throw HTTPError(.forbidden, message: "the installation is another user's")
        }
        return try database.rows(
            "SELECT id FROM installations WHERE user = ? ORDER BY rowid DESC LIMIT 20", user
        ).map { $0[0] }
    }
}

// relay: at least once, in order
/// Publishes what is in the outbox, on a thread of its own. Of several backends with one database only
/// one may run it. When it fails, the program ends: the next start begins with the oldest unsent event.
struct Relay {
    static let wake = DispatchSemaphore(value: 0)
    private let database: Database
    private let producer: OpaquePointer
    private let topic: OpaquePointer
    /// The number of the first event of a batch that was not acknowledged.
    private let acknowledged = UnsafeMutablePointer<Int>.allocate(capacity: 1)

    init(_ settings: Settings) throws {
        database = try Database(path: settings["DATABASE"])
        let configuration = rd_kafka_conf_new()
        // With idempotence a retry inside the producer neither duplicates nor reorders.
        for (name, value) in [
            ("bootstrap.servers", settings["KAFKA"]), ("acks", "all"),
            ("enable.idempotence", "true"),
            // Kafka's own; librdkafka's default is another.
            ("partitioner", "murmur2_random"),
        ] {
            precondition(
                rd_kafka_conf_set(configuration, name, value, nil, 0) == RD_KAFKA_CONF_OK, name)
        }
        rd_kafka_conf_set_opaque(configuration, acknowledged)
        rd_kafka_conf_set_dr_msg_cb(configuration) { _, message, acknowledged in
            guard let message, message.pointee.err != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
            let acknowledged = acknowledged!.assumingMemoryBound(to: Int.self)
            acknowledged.pointee = min(
                acknowledged.pointee, Int(bitPattern: message.pointee._private))
        }
        guard let producer = rd_kafka_new(RD_KAFKA_PRODUCER, configuration, nil, 0) else {
            throw Database.Failure(text: "librdkafka takes no producer")
        }
        self.producer = producer
        let name = settings.environment["EVENTS_TOPIC"] ?? "lamplighter.events"
        topic = rd_kafka_topic_new(producer, name, nil)
    }

    func run() throws {
        while true {
            let events = try database.rows(
                "SELECT id, subject, event FROM outbox ORDER BY id LIMIT 500")
            let count = try publish(events)
            // One that was not acknowledged is sent again, and so are those after it: a duplicate is
            // harmless, since an event says no more than that something changed.
            if count > 0 {
                try database.rows("DELETE FROM outbox WHERE id <= ?", events[count - 1][0])
            }
            if count == 0 || count < events.count { _ = Self.wake.wait(timeout: .now() + 1) }
        }
    }

    /// - Returns: How many were acknowledged before the first that was not.
    private func publish(_ events: [[String]]) throws -> Int {
        acknowledged.pointee = events.count
        for (number, event) in events.enumerated() {
            var value = Array(event[2].utf8)
            let refused = rd_kafka_produce(
                topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, &value, value.count, event[1],
                event[1].utf8.count, UnsafeMutableRawPointer(bitPattern: number))
            if refused != 0 {
                throw Database.Failure(
                    text: String(cString: rd_kafka_err2str(rd_kafka_last_error())))
            }
        }
        while rd_kafka_flush(producer, 1000) != RD_KAFKA_RESP_ERR_NO_ERROR {}
        return acknowledged.pointee
    }
}
// end

// MARK: Credentials

/// What the user may hear of: all doors, and the messages to this user. A prefix ends with a character
/// that ends a name: `user/ada` would also be one of `user/adam/messages`.
func subjectPrefixes(of user: String) -> [String] { ["door-", "user/\(user)/"] }

struct Signer {
    let issuer: String
    private let key: P256.Signing.PrivateKey

    init(_ settings: Settings) throws {
        issuer = settings["ISSUER"]
        key = try P256.Signing.PrivateKey(pemRepresentation: settings.file("SIGNING_KEY_FILE"))
    }

    struct JWK: ResponseCodable {
        var kty = "EC"
        var crv = "P-256"
        var alg = "ES256"
        var use = "sig"
        var kid: String
        var x: String
        var y: String
    }

    struct KeySet: ResponseCodable {
        var keys: [JWK]
    }

    var jwk: JWK {
        let raw = key.publicKey.rawRepresentation
        let (x, y) = (Self.base64URL(raw.prefix(32)), Self.base64URL(raw.suffix(32)))
        let hash = SHA256.hash(data: Data((x + y).utf8))
        return JWK(kid: hash.prefix(8).map { String(format: "%02x", $0) }.joined(), x: x, y: y)
    }

    // credential: for an app that talks to the registrar itself
    struct Claims: Encodable {
        var iss: String
        var aud = "lamplighter"
        var sub: String
        var iat: Int
        var exp: Int
        var app: String
        /// The user's other installations too: after signing out and in, the app removes the one before.
        var installation: [String]
        var subjectPrefixes: [String]
    }

    func credential(user: String, installations: [String]) throws -> String {
        let now = Int(Date().timeIntervalSince1970)
        return try signed(
            Claims(
                iss: issuer, sub: user, iat: now, exp: now + 600, app: app,
                installation: installations,
                subjectPrefixes: subjectPrefixes(of: user)))
    }
    // end

    /// A JSON Web Token with ES256 (RFC 7518, 3.4).
    private func signed(_ claims: Claims) throws -> String {
        let header = try JSONEncoder().encode(["alg": "ES256", "typ": "JWT", "kid": jwk.kid])
        let text = Self.base64URL(header) + "." + Self.base64URL(try JSONEncoder().encode(claims))
        return text + "."
            + Self.base64URL(try key.signature(for: Data(text.utf8)).rawRepresentation)
    }

    private static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
            "=", with: "")
    }
}

// MARK: Registrations

/// Passes on the registrations of one environment, in one batch what came in during the last one. The
/// app keeps each until it is answered, so nothing needs to be stored here.
actor Forwarder {
    struct Answer {
        var status: Int
        var body: Data
        var retryAfter: Int?
    }

    private let url: URL
    private let key: String
    private var waiting: [(item: Data, answer: CheckedContinuation<Answer, Never>)] = []
    private var isSending = false

    init(_ settings: Settings, environment: String) throws {
        url = URL(
            string: "\(settings["REGISTRAR"])/v1/apps/\(app)/environments/\(environment)/batch")!
        key = try settings.file("SERVICE_KEY_FILE")
    }

    func forward(_ item: Data) async -> Answer {
        await withCheckedContinuation { answer in
            waiting.append((item, answer))
            if !isSending {
                isSending = true
                Task { await send() }
            }
        }
    }

    private func send() async {
        while !waiting.isEmpty {
            var bytes = 0
            let batch = waiting.prefix(500).prefix { entry in
                defer { bytes += entry.item.count }
                return bytes < gatheredBytesMax
            }
            waiting.removeFirst(batch.count)
            let answers = await post(batch.map(\.item))
            for (entry, answer) in zip(batch, answers) { entry.answer.resume(returning: answer) }
        }
        isSending = false
    }

    private func post(_ items: [Data]) async -> [Answer] {
        var request = URLRequest(url: url, timeoutInterval: 30)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.setValue("Bearer \(key)", forHTTPHeaderField: "Authorization")
        request.httpBody =
            Data("{\"items\":[".utf8) + items.joined(separator: Data(",".utf8)) + Data("]}".utf8)
        if let (body, response) = try? await URLSession.shared.data(for: request),
            (response as? HTTPURLResponse)?.statusCode == 200,
            let answers = try? Self.answers(body), answers.count == items.count
        {
            return answers
        }
        // Whatever it is, a refused key too, the app cannot mend it: 503 makes it try again later.
        let away = Answer(
            status: 503, body: Data(#"{"detail":"the registrar did not answer"}"#.utf8))
        return items.map { _ in away }
    }

    private static func answers(_ body: Data) throws -> [Answer] {
        let object = try JSONSerialization.jsonObject(with: body) as? [String: Any]
        return try (object?["results"] as? [[String: Any]] ?? []).map { result in
            let content = result["body"] ?? result["problem"] ?? [String: Any]()
            let retryAfter = (content as? [String: Any])?["retryAfterSeconds"] as? Int
            return Answer(
                status: result["status"] as? Int ?? 503,
                body: try JSONSerialization.data(withJSONObject: content), retryAfter: retryAfter)
        }
    }
}

// forwarding: for an app that talks to this backend alone
/// An item of a batch. A service key is not limited to subjects, so this backend must look at them, and
/// sends on what it has looked at, not the bytes that it was sent.
struct Registration: Codable {
    struct Target: Codable {
        var token: String?
        var onChange: String?
        var shows: [Shown]?
    }

    struct Shown: Codable {
        var kind: String
        var subjects: [String]?
    }

    var method: String?
    var installation: String?
    var `class`: String?
    var handler: String?
    var sequence: Int?
    var targets: [Target]?
    var handlers: [String: [Target]]?

    func isAllowed(to user: String) -> Bool {
        let all = (targets ?? []) + (handlers ?? [:]).values.joined()
        return all.flatMap { $0.shows ?? [] }.allSatisfy { shown in
            // A target without subjects would hear of all of its kind.
            let subjects = shown.subjects ?? []
            return !subjects.isEmpty
                && subjects.allSatisfy { subject in
                    subjectPrefixes(of: user).contains { subject.utf8.starts(with: $0.utf8) }
                }
        }
    }
}
// end

// MARK: Routes

struct Change: Decodable {
    var isOpen: Bool
}

struct Credential: ResponseCodable {
    var token: String
}

@main
struct Backend {
    let settings: Settings
    let sessions: [String: String]
    let garage: Garage
    let signer: Signer
    let forwarders: [String: Forwarder]

    static func main() async throws {
        let settings = Settings()
        let backend = Backend(
            settings: settings, sessions: settings.sessions, garage: try Garage(settings),
            signer: try Signer(settings),
            forwarders: [
                "production": try Forwarder(settings, environment: "production"),
                "development": try Forwarder(settings, environment: "development"),
            ])
        Thread.detachNewThread {
            do {
                try Relay(settings).run()
            } catch {
                fatalError("relay: \(error)")
            }
        }
        let address = (settings.environment["LISTEN"] ?? "127.0.0.1:8080").split(separator: ":")
        let application = Application(
            router: backend.router(),
            configuration: .init(address: .hostname(String(address[0]), port: Int(address[1])!)))
        try await application.runService()
    }

    func router() -> Router<BasicRequestContext> {
        let router = Router()
        router.get(".well-known/jwks.json") { _, _ in Signer.KeySet(keys: [signer.jwk]) }
        router.get("doors") { request, _ in
            _ = try user(request)
            return try await garage.doors()
        }
        router.get("doors/:id") { request, context in
            _ = try user(request)
            let id = try context.parameters.require("id")
            guard let door = try await garage.doors().first(where: { $0.id == id }) else {
                throw HTTPError(.notFound, message: "there is no such door")
            }
            return door
        }
        router.put("doors/:id") { request, context in
            _ = try user(request)
            let change = try await body(Change.self, of: request)
            return try await garage.setDoor(context.parameters.require("id"), isOpen: change.isOpen)
        }
        router.get("messages") { request, _ in try await garage.messages(of: user(request)) }
        router.get("push-credential") { request, _ in
            let user = try user(request)
            let installation = request.uri.queryParameters["installation"].map(String.init) ?? ""
            let installations = try await garage.own(installation, user: user)
            return Credential(
                token: try signer.credential(user: user, installations: installations))
        }
        let installation = "v1/apps/\(app)/environments/:environment/installations/:installation"
        for path in ["", "/:class", "/:class/:handler"] {
            for method in [HTTPRequest.Method.put, .delete] {
                router.on("\(installation)\(path)", method: method, use: forward)
            }
        }
        return router
    }

    private func forward(_ request: Request, _ context: BasicRequestContext) async throws
        -> Response
    {
        let user = try user(request)
        let parameters = context.parameters
        guard let forwarder = forwarders[try parameters.require("environment")] else {
            throw HTTPError(.notFound)
        }
        let installation = try parameters.require("installation")
        _ = try await garage.own(installation, user: user)
        var item =
            request.method == .put ? try await body(Registration.self, of: request) : Registration()
        guard item.isAllowed(to: user) else {
            throw HTTPError(.forbidden, message: "a subject is not this user's")
        }
        item.method = request.method.rawValue
        item.installation = installation
        item.class = parameters.get("class")
        item.handler = parameters.get("handler")
        let answer = await forwarder.forward(try JSONEncoder().encode(item))
        let isRefused = answer.status >= 400
        var headers: HTTPFields = [
            .contentType: isRefused ? "application/problem+json" : "application/json"
        ]
        if [429, 503].contains(answer.status) {
            headers[.retryAfter] = "\(answer.retryAfter ?? 5)"
        }
        return Response(
            status: .init(code: isRefused ? answer.status : 200), headers: headers,
            body: .init(byteBuffer: ByteBuffer(bytes: answer.body)))
    }

    private func user(_ request: Request) throws -> String {
        let bearer = request.headers[.authorization]?.trimmingPrefix("Bearer ") ?? ""
        guard let user = sessions[String(bearer)] else {
            throw HTTPError(.unauthorized, message: "sign in")
        }
        return user
    }

    private func body<Value: Decodable>(_ type: Value.Type, of request: Request) async throws
        -> Value
    {
        let bytes = try await request.body.collect(upTo: bodyBytesMax)
        do {
            return try JSONDecoder().decode(type, from: Data(bytes.readableBytesView))
        } catch {
            throw HTTPError(.badRequest, message: "the body is not what the README says")
        }
    }
}
