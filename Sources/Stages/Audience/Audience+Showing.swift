// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

extension Audience {
    /// The longest list of a subject that is searched for one token: 64 tokens, each with four
    /// kinds or handlers. It takes some 5 µs, most of it cache misses, and may be asked for each
    /// push of the list.
    package static let searchedMax = 256

    /// Whether a registration shows the subject for this token, or the token is one of the
    /// installation's; true where the list is longer than `searchedMax`, which is not searched, and
    /// for an installation where none are kept.
    package func mayShow(
        _ token: TokenID, _ scope: ListScope, _ name: UnsafeRawBufferPointer
    ) -> Bool {
        if scope == .installation, !furtherLists.contains(.installations) { return true }
        let app = routes.app(of: tokens.route(of: token))
        guard let list = list(scope, app, name, hash: hash(app, name, scope)) else { return false }
        let count = count(list)
        return count > Self.searchedMax
            || (0..<count).contains { entry(list, at: $0).token == token }
    }
}
