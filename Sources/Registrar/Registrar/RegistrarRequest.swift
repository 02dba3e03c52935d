// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import RegistrarRules

/// A request whose caller is known, with what another replica needs to answer it instead.
struct RegistrarRequest: Sendable {
    var method: HTTPRequest.Method
    var route: RegistrarRoute
    var caller: RegistrarCaller
    /// The path, and what of the query counts.
    var target: String
    var body: [UInt8]
    /// Whether another replica has passed it on: then it is answered here or not at all.
    var isForwarded: Bool
    /// Removes only what has a lower sequence.
    var belowSequence: Int64?
    /// Shows the handlers that follow this one, by the parts of their records' keys.
    var after: String?
    /// Whether it is an item of a batch, whose rates are counted there.
    var isOfBatch = false
    let arrivedAt = ContinuousClock.now

    init(
        _ http: HTTPRequest, route: RegistrarRoute, caller: RegistrarCaller
    ) throws(Problem) {
        method = http.method
        self.route = route
        self.caller = caller
        target = http.path
        body = http.body
        isForwarded = caller.isReplica
        if let text = http.query[RequestRules.belowSequence] {
            let sequence = try RequestRules.sequence(text)
            belowSequence = sequence
            target += "?\(RequestRules.belowSequence)=\(sequence)"
        }
        after = try http.query[RequestRules.after].map(RequestRules.place)
    }

    var isCompleteSet: Bool {
        if case .all = route { method == .put } else { false }
    }

    /// This request for one handler of its installation.
    func passing(_ method: HTTPRequest.Method, _ suffix: String) -> RegistrarRequest {
        var request = self
        request.method = method
        if let key = route.installation { request.target = Self.base(of: key) + suffix }
        return request
    }

    static func base(of key: InstallationKey) -> String {
        "/v1/apps/\(key.app)/environments/\(key.environment.name)/installations/\(key.installation)"
    }

    static func path(of key: InstallationKey, _ route: RegistrarRoute) -> String {
        switch route {
        case .all(_, let tokenClass): base(of: key) + "/\(tokenClass.rawValue)"
        case .handler(_, let tokenClass, let handler):
            base(of: key) + "/\(tokenClass.rawValue)/\(handler)"
        default: base(of: key)
        }
    }
}

extension HTTPRequest {
    /// Refuses what the head says that this route does not take.
    func check(_ route: RegistrarRoute) throws(Problem) {
        try RequestRules.check(queryNames: query.keys, method: method.rawValue, route)
        // Of two values one reader would take the first and another the last.
        guard rawQuery.split(separator: "&").count <= query.count else {
            throw Problem(
                .invalid, "a parameter of the query is there twice", remedy: "send it once",
                field: "query")
        }
        guard method == .put || method == .post else { return }
        try RequestRules.check(
            contentType: headers.values("content-type"),
            hasBody: !body.isEmpty || (announcedBytes ?? 0) > 0)
        try RequestRules.check(contentEncoding: headers.values("content-encoding"))
    }
}

extension RegistrarRoute {
    var installation: InstallationKey? {
        switch self {
        case .installation(let key), .all(let key, _), .handler(let key, _, _),
            .challenge(let key), .attestation(let key):
            key
        case .openAPI, .batch: nil
        }
    }
}
