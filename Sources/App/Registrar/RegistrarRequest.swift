// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import Registering

/// A request whose caller is known, with what another replica needs to answer it instead.
struct RegistrarRequest: Sendable {
    var method: HTTPQuestion.Method
    var route: RegistrarRoute
    var caller: RegistrarCaller
    /// The path, and what of the query counts.
    var target: String
    var body: [UInt8]
    /// Whether another replica has passed it on: then it is answered here or not at all.
    var isForwarded: Bool
    /// Removes only what has a lower sequence.
    var belowSequence: Int64?

    init(
        _ question: HTTPQuestion, route: RegistrarRoute, caller: RegistrarCaller
    ) throws(Problem) {
        method = question.method
        self.route = route
        self.caller = caller
        target = question.path
        body = question.body
        isForwarded = question.headers[KeyOwners.forwardedHeader] != nil
        if let text = question.query["belowSequence"] {
            // What was not understood must not remove more than was meant.
            guard let sequence = Int64(text), (0...RegistrationDesk.sequenceMax).contains(sequence)
            else {
                throw Problem(
                    .invalid, "belowSequence is not an integer from 0 to 2^53 - 1",
                    remedy: "send a sequence, or leave it out", field: "belowSequence")
            }
            belowSequence = sequence
            target += "?belowSequence=\(sequence)"
        }
    }

    /// This request for one handler of its installation.
    func passing(_ method: HTTPQuestion.Method, _ suffix: String) -> RegistrarRequest {
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

extension RegistrarRoute {
    var installation: InstallationKey? {
        switch self {
        case .installation(let key), .all(let key, _), .handler(let key, _, _),
            .attestation(let key):
            key
        case .openAPI, .batch, .challenge: nil
        }
    }
}
