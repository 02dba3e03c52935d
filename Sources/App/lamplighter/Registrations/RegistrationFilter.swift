// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import PushModel
import RegistrarRules

/// The options that select registrations and their tokens.
struct RegistrationFilter: ParsableArguments {
    @Option(help: "Only of this app.")
    var app: String?

    @Option(help: "Only in production or development.")
    var environment: String?

    @Option(help: "Only of this installation.")
    var installation: String?

    @Option(name: .customLong("class"), help: "Only tokens of this class.")
    var tokenClass: String?

    @Option(help: "Only tokens that show this subject.")
    var subject: String?

    @Option(name: .customLong("token-id"), help: "Only the token of these 16 digits.")
    var tokenID: String?

    @Option(help: "Only what was registered since this instant, or for so long: 7d.")
    var since: String?

    @Option(help: "Only what was registered before this instant, or longer ago: 90d.")
    var before: String?

    @Flag(help: "Only what was imported from another sender.")
    var imported = false

    func matcher() throws -> Matcher {
        let now = RecordWriter.now().wall
        if let tokenID, TokenName(written: tokenID) == nil {
            throw ValidationError(
                "'\(TerminalText.visible(tokenID))' is not the 16 digits of a token")
        }
        return Matcher(
            scope: RegistrationScope(
                environment: try environment.map(Arguments.environment), app: app,
                installation: installation),
            tokenClass: try tokenClass.map(Arguments.tokenClass), subject: subject,
            token: tokenID.flatMap { TokenName(written: $0) },
            since: try since.map { try Arguments.instant($0, now: now) },
            before: try before.map { try Arguments.instant($0, now: now) },
            isImported: imported)
    }

    struct Matcher {
        var scope: RegistrationScope
        var tokenClass: TokenClass?
        var subject: String?
        var token: TokenName?
        var since: WallTime?
        var before: WallTime?
        var isImported: Bool

        func admits(_ key: InstallationKey, _ handler: String) -> Bool {
            if isImported, !ImportedRegistration.isHandler(handler) { return false }
            if let environment = scope.environment, key.environment != environment { return false }
            if let app = scope.app, key.app != app { return false }
            return scope.installation.map { key.installation == $0 } ?? true
        }

        func admits(registeredAt time: WallTime) -> Bool {
            if let since, time < since { return false }
            return before.map { time < $0 } ?? true
        }

        func admits(_ target: ListedTarget) -> Bool {
            if let tokenClass, target.tokenClass != tokenClass { return false }
            if let subject, !target.subjects.contains(subject) { return false }
            return token.map { TokenName(target.token) == $0 } ?? true
        }
    }
}
