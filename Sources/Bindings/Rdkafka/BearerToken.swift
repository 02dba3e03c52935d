// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka
internal import Glibc

/// What a client shows to brokers with SASL/OAUTHBEARER. Never printed with its value.
package struct BearerToken: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    package let value: String
    /// Whose token it is; the library only names it in its own log.
    package let principal: String
    /// Milliseconds since 1970.
    package let expiresAtMilliseconds: Int64
    package let extensions: [Extension]

    /// A pair of RFC 7628, section 3.1, which brokers are shown beside the token.
    package struct Extension: Sendable, Hashable {
        package let name: String
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(
        value: String, principal: String, expiresAtMilliseconds: Int64, extensions: [Extension]
    ) {
        self.value = value
        self.principal = principal
        self.expiresAtMilliseconds = expiresAtMilliseconds
        self.extensions = extensions
    }

    package var description: String { "token of \(principal)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A client that waits for a bearer token. It keeps the client alive only for the length of a call,
/// after which the client may end on the caller's thread: hold no lock meanwhile.
package struct TokenRecipient: Sendable {
    private weak var client: Client?
    /// An object of its own, since a client's address may be another's as soon as the client is
    /// gone.
    private let identity = Identity()
    private final class Identity: Sendable {}

    init(_ client: Client) {
        self.client = client
    }

    package func isSame(as other: TokenRecipient) -> Bool { identity === other.identity }

    /// Gives the client a token for new connections; existing ones keep theirs. Has no effect when
    /// the client is gone.
    ///
    /// - Throws: the library's objection to the token. It never quotes the token's value, provided
    ///   that the value is made of the characters that RFC 6750 allows.
    package func take(_ token: BearerToken) throws(RdkafkaError) {
        try client?.setToken(token)
    }

    /// The client raises `reason` as an error, unless that was the last one's too, and asks again
    /// ten seconds later. Returns false when the client is gone.
    @discardableResult
    package func takeFailure(_ reason: String) -> Bool {
        guard let client else { return false }
        Client.refuseToken(of: client.pointer, reason)
        return true
    }
}

extension Client {
    /// Has the library's own thread call for tokens, whether anybody polls the client or not.
    func callForTokensInBackground() throws(RdkafkaError) {
        precondition(context.recipient == nil, "a client has only one source of tokens")
        context.recipient = TokenRecipient(self)
        try RdkafkaError.check(adopting: rd_kafka_sasl_background_callbacks_enable(pointer))
    }

    /// - Parameter client: not a `Client`, since the library's callbacks may not hold one: they run
    ///   on a thread that the client's end waits for.
    static func refuseToken(of client: OpaquePointer, _ reason: String) {
        // Fails only for a client that does not use OAUTHBEARER, and that one never asks.
        _ = rd_kafka_oauthbearer_set_token_failure(client, reason)
    }

    fileprivate func setToken(_ token: BearerToken) throws(RdkafkaError) {
        var text = [CChar](repeating: 0, count: 512)
        // Copied by the library before it returns.
        let strings = token.extensions.flatMap { [strdup($0.name), strdup($0.value)] }
        defer { for string in strings { free(string) } }
        var pointers = strings.map { UnsafePointer($0) }
        let code = rd_kafka_oauthbearer_set_token(
            pointer, token.value, token.expiresAtMilliseconds, token.principal, &pointers,
            pointers.count, &text, text.count)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw RdkafkaError(ErrorCode(code), message: String(nulTerminated: text))
        }
    }
}
