// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Why a request was refused, as problem details (RFC 9457).
package struct Problem: Error, Hashable, Sendable {
    package enum Name: String, CaseIterable, Sendable {
        case badRequest, malformedJSON, invalid, unauthorized, forbidden, notFound, methodNotAllowed
        case staleSequence, handlerOfAnotherClass, tooManyHandlers
        case bodyTooLarge, unsupportedMediaType, headerTooLarge, wrongHost
        case expectationFailed
        case tooManyRequests, unavailable

        package init?(status: Int) {
            guard let name = Self.allCases.first(where: { $0.status == status }) else {
                return nil
            }
            self = name
        }

        package var status: Int {
            switch self {
            case .malformedJSON, .badRequest: 400
            case .unauthorized: 401
            case .forbidden: 403
            case .notFound: 404
            case .methodNotAllowed: 405
            case .staleSequence, .handlerOfAnotherClass: 409
            case .bodyTooLarge: 413
            case .unsupportedMediaType: 415
            case .expectationFailed: 417
            case .wrongHost: 421
            case .invalid, .tooManyHandlers: 422
            case .tooManyRequests: 429
            case .headerTooLarge: 431
            case .unavailable: 503
            }
        }

        package var title: String {
            switch self {
            case .malformedJSON: "The body is not JSON"
            case .invalid: "A part of the request is not acceptable"
            case .unauthorized: "The caller is not known"
            case .forbidden: "The caller may not do this"
            case .notFound: "Nothing is here"
            case .methodNotAllowed: "The path does not have this method"
            case .staleSequence: "A newer snapshot is stored"
            case .handlerOfAnotherClass: "The handler's name belongs to another class"
            case .tooManyHandlers: "The installation has too many handlers"
            case .bodyTooLarge: "The body is too long"
            case .unsupportedMediaType: "The body is not declared as plain JSON"
            case .headerTooLarge: "The headers are too long"
            case .badRequest: "The request is not HTTP as expected"
            case .expectationFailed: "The request expects what is not offered"
            case .wrongHost: "The request is for another host"
            case .tooManyRequests: "There are too many requests"
            case .unavailable: "The registration cannot be written now"
            }
        }
    }

    package var name: Name
    /// A finer name than that of `name`.
    package var type: String?
    package var detail: String
    package var remedy: String
    /// A JSON pointer into the body, or the name of a part of the path.
    package var field: String?
    package var storedSequence: Int64?
    package var retryAfterSeconds: Int?
    /// For 401: the value of WWW-Authenticate.
    package var challenge: String?

    package init(
        _ name: Name, _ detail: String, remedy: String, field: String? = nil,
        storedSequence: Int64? = nil, retryAfterSeconds: Int? = nil
    ) {
        self.name = name
        self.detail = detail
        self.remedy = remedy
        self.field = field
        self.storedSequence = storedSequence
        self.retryAfterSeconds = retryAfterSeconds
    }

    package init(_ member: InvalidMember) {
        self.init(
            member.pointer.isEmpty ? .malformedJSON : .invalid, member.detail,
            remedy: member.remedy, field: member.pointer)
    }

    package var status: Int { name.status }

    /// The members, in the order of RFC 9457.
    package var json: JSONText {
        var members: [(String, JSONText)] = [
            ("type", .string("/problems/\(type ?? name.rawValue)")), ("title", .string(name.title)),
            ("status", .literal("\(status)")), ("detail", .string(detail)),
            ("remedy", .string(remedy)),
        ]
        if let field { members.append(("field", .string(field))) }
        if let storedSequence {
            members.append(("storedSequence", .literal("\(storedSequence)")))
        }
        if let retryAfterSeconds {
            members.append(("retryAfterSeconds", .literal("\(retryAfterSeconds)")))
        }
        return .object(members)
    }
}
