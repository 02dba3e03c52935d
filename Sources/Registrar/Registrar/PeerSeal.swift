// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import OpenSSL
internal import PushModel

/// What replicas know each other by: the token that they share signs each request that one passes on,
/// the answer to it, and the address that one announces. The token itself is never sent, so whoever
/// listens at a dead replica's address learns nothing, and is not believed.
struct PeerSeal: Sendable {
    private let key: [UInt8]

    init(_ token: Secret) { key = Array(token.text.utf8) }

    /// What is signed; a signature of one kind is none of another.
    private enum Kind: String {
        case request = "lamplighter peer request 1"
        case answer = "lamplighter peer answer 1"
        case address = "lamplighter peer address 1"
    }

    /// No part has a line feed: paths, dates and digests are such, and callers are printable ASCII.
    private func signature(_ kind: Kind, _ parts: [String]) -> String {
        let text = ([kind.rawValue] + parts).joined(separator: "\n")
        return Hexadecimal.encode(HMACSHA256.of(Array(text.utf8), key: key))
    }

    private func isSigned(_ kind: Kind, _ parts: [String], as shown: String) -> Bool {
        ConstantTime.isEqual(Array(signature(kind, parts).utf8), Array(shown.utf8))
    }

    static func digest(_ body: [UInt8]) -> String { Hexadecimal.encode(SHA256Digest.of(body)) }

    // MARK: Requests

    /// The head of a request that one replica passes on to another.
    struct Passed: Sendable, Hashable {
        var method: String
        /// Path and query as they are sent.
        var target: String
        /// The announced address of the replica that it is for.
        var owner: String
        /// What is asked: `handler`, `list` or `claim`.
        var kind: String
        /// Who has sent it to the first replica.
        var caller: String
        var date: WallTime
        /// Of the body.
        var digest: String

        fileprivate var parts: [String] {
            [method, target, owner, kind, caller, "\(date.milliseconds)", digest]
        }
    }

    static let kindHeader = "lamplighter-forwarded"
    private static let callerHeader = "lamplighter-caller"
    private static let dateHeader = "lamplighter-date"
    private static let digestHeader = "lamplighter-digest"
    static let signatureHeader = "lamplighter-signature"
    /// How far the replicas' clocks may be apart, and for how long what was recorded can be repeated.
    static let dateTolerance = Duration.seconds(30)

    func headers(of passed: Passed) -> [(name: String, value: String)] {
        [
            (Self.kindHeader, passed.kind), (Self.callerHeader, passed.caller),
            (Self.dateHeader, "\(passed.date.milliseconds)"), (Self.digestHeader, passed.digest),
            (Self.signatureHeader, signature(.request, passed.parts)),
        ]
    }

    /// The request that another replica has passed on to the one at `owner`; nil if none has.
    func passed(_ http: HTTPRequest, to owner: String, now: WallTime) -> Passed? {
        func value(_ name: String) -> String? {
            let values = http.headers.values(name)
            return values.count == 1 ? values[0] : nil
        }
        guard let kind = value(Self.kindHeader), let caller = value(Self.callerHeader),
            let date = value(Self.dateHeader).flatMap({ Int64($0) }),
            let digest = value(Self.digestHeader), let shown = value(Self.signatureHeader)
        else { return nil }
        let passed = Passed(
            method: http.method.rawValue, target: http.target, owner: owner, kind: kind,
            caller: caller, date: WallTime(milliseconds: date), digest: digest)
        guard isSigned(.request, passed.parts, as: shown) else { return nil }
        // The number is signed, and so a replica's.
        let age = now - passed.date
        return age <= Self.dateTolerance && age >= .zero - Self.dateTolerance ? passed : nil
    }

    // MARK: Answers

    func signature(ofAnswer status: Int, _ body: [UInt8], to passed: Passed) -> String {
        signature(.answer, passed.parts + ["\(status)", Self.digest(body)])
    }

    func isSigned(
        _ signature: String, status: Int, body: [UInt8], answering passed: Passed
    ) -> Bool {
        isSigned(.answer, passed.parts + ["\(status)", Self.digest(body)], as: signature)
    }

    // MARK: Addresses

    /// What a replica announces to the others.
    ///
    /// - Parameter hasImports: whether something in its partitions was imported.
    func announcement(of url: String, hasImports: Bool = false) -> String {
        let parts = hasImports ? [url, Self.importsMark] : [url]
        return (parts + [signature(.address, parts)]).joined(separator: " ")
    }

    private static let importsMark = "imports"

    /// The address in an announcement; nil if no replica has signed it.
    func url(in announcement: String) -> String? {
        var parts = announcement.split(separator: " ", omittingEmptySubsequences: false)
            .map(String.init)
        guard let shown = parts.popLast(), (1...2).contains(parts.count),
            isSigned(.address, parts, as: shown)
        else { return nil }
        return parts[0]
    }

    /// Whether a replica says that something in its partitions was imported.
    func hasImports(in announcement: String) -> Bool {
        url(in: announcement) != nil && announcement.contains(" \(Self.importsMark) ")
    }
}
