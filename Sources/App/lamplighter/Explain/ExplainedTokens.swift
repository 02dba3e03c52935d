// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.
import Worker

/// The answers of several workers to the same question. Each has the whole index, so what it says of
/// a token is taken from the first; what waits and what became of pushes is each worker's own.
struct ExplainedTokens: Sendable {
    struct Token: Sendable {
        /// As the first worker that has it says.
        var first: TokenReply.Token
        var byWorker: [(worker: String, token: TokenReply.Token)]
    }

    private(set) var tokens: [Token] = []

    /// - Parameter answers: with the workers' names.
    init(_ answers: [(worker: String, reply: TokenReply)]) {
        var positions: [[String]: Int] = [:]
        for (worker, reply) in answers {
            for token in reply.tokens {
                if let position = positions[token.identity] {
                    tokens[position].byWorker.append((worker, token))
                } else {
                    positions[token.identity] = tokens.count
                    tokens.append(Token(first: token, byWorker: [(worker, token)]))
                }
            }
        }
    }

    /// Adds the names of the registrations that Kafka has.
    mutating func name(by registrations: [FoundRegistration]) {
        for place in tokens.indices {
            let token = tokens[place].first
            for registration in registrations
            where registration.app == token.app && registration.environment == token.environment {
                let name = TokenReply.Registration(
                    installation: registration.installation, handler: registration.handler)
                let isItsOwn = registration.targets.contains {
                    $0.tokenID == token.tokenID && $0.class == token.class
                }
                if isItsOwn, !tokens[place].first.registrations.contains(name) {
                    tokens[place].first.registrations.append(name)
                }
            }
        }
    }
}
