// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What is looked at of a request to decide whether its caller may make it.
package struct AccessRequest: Sendable {
    /// As it was sent, such as `PUT`.
    package var method: String
    /// The path as it was sent, without the query: `/v1/apps/…`.
    package var path: String
    /// The query as it was sent, without the question mark; empty for none.
    package var query: String
    /// What the path means, in the one form that each thing has: escapes decoded, names written out.
    package var resource: String
    /// The values of all `authorization` headers.
    package var authorization: [String]
    package var body: [UInt8]
    /// The app, environment and installation that the path names.
    package var app: String
    package var environment: PushEnvironment
    /// Nil for a request about several installations, each of which is asked about later.
    package var installation: String?

    /// Path and query as they were sent.
    var target: String { query.isEmpty ? path : "\(path)?\(query)" }

    package init(
        method: String, path: String, authorization: [String], body: [UInt8], app: String,
        environment: PushEnvironment, installation: String?
    ) {
        self.method = method
        self.path = path
        query = ""
        resource = path
        self.authorization = authorization
        self.body = body
        self.app = app
        self.environment = environment
        self.installation = installation
    }
}

/// What the head of a request has shown of its caller.
package struct AccessAdmission: Sendable {
    enum Finding: Sendable {
        case caller(Caller, AccessCounts.Scheme)
        /// Whether the assertion is of the credential's key, its request's body decides.
        case assertion(PresentedAssertion)
    }

    let finding: Finding
    /// Without its body.
    let request: AccessRequest

    /// Whether who asks may write one installation alone.
    package var isOfDevice: Bool {
        switch finding {
        case .caller(let caller, _):
            if case .some(let names) = caller.rights.installations {
                names.count <= 1
            } else {
                false
            }
        case .assertion: true
        }
    }

    /// Names who asks, as `Caller.id` does.
    package var callerID: String {
        switch finding {
        case .caller(let caller, _): caller.id
        case .assertion(let presented): presented.callerID
        }
    }
}

/// Somebody who has shown who they are, and what they may do.
package struct Caller: Sendable, Hashable {
    /// Names the caller in log lines and for rate limits, such as `service:home-backend`: printable
    /// ASCII of at most 128 bytes, and no secret.
    package let id: String
    let rights: Rights

    init(id: String, rights: Rights) {
        self.id = Self.shown(id)
        self.rights = rights
    }

    /// Whether the caller may read and write what this installation shows.
    package func allows(
        app: String, environment: PushEnvironment, installation: String
    ) -> Bool {
        allows(app: app, environment: environment) && rights.installations.contains(installation)
    }

    /// Whether the caller may write that an installation shows this subject. An empty one stands
    /// for a target without subjects, which hears of all of a kind: that is for those alone whose
    /// subjects are not limited.
    package func allows(subject: some Collection<UInt8>) -> Bool {
        guard let prefixes = rights.subjectPrefixes else { return true }
        return prefixes.contains { subject.starts(with: $0) }
    }

    /// Whether the caller may write this sequence. An app counts in milliseconds since 1970, or from 0; one
    /// that is far ahead of the clock would keep whoever counts so from writing for years.
    package func allows(sequence: Int64, now: WallTime) -> Bool {
        !rights.sequencesFollowClock
            || sequence <= now.milliseconds + Self.clockErrorMax.components.seconds * 1000
    }

    /// Ten years: a device whose clock is further ahead has no valid certificate to talk to. Whoever
    /// writes the last sequence that is allowed keeps nobody out, since a millisecond later there is one more.
    private static let clockErrorMax = Duration.seconds(3650 * 86_400)

    func allows(app: String, environment: PushEnvironment) -> Bool {
        rights.apps.contains(app) && (rights.environment ?? environment) == environment
    }

    private static let idBytesMax = 128

    /// Claims are anybody's text: what is not printable ASCII is shown as `?`.
    private static func shown(_ id: String) -> String {
        let bytes = id.utf8.prefix(idBytesMax).map { (0x21...0x7E).contains($0) ? $0 : 0x3F }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// What a caller may do.
struct Rights: Sendable, Hashable {
    var apps = Names.all
    /// Nil for both.
    var environment: PushEnvironment?
    var installations = Names.all
    /// What a subject must begin with; nil for any subject.
    var subjectPrefixes: [[UInt8]]?
    /// Whether nobody vouches for the sequences that the caller sends.
    var sequencesFollowClock = false
}

/// Names that somebody may use.
enum Names: Sendable, Hashable {
    case all
    case some(Set<String>)

    /// `*` among the names stands for all.
    init(_ names: [String]) { self = names.contains("*") ? .all : .some(Set(names)) }

    func contains(_ name: String) -> Bool {
        switch self {
        case .all: true
        case .some(let names): names.contains(name)
        }
    }
}
