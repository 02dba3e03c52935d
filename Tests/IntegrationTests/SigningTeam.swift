// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import Foundation
import OpenSSL
import PushModel

/// A developer team with one key and its apps, made once for all tests.
struct SigningTeam: Sendable {
    let teamID: String
    let keyID: String
    let apps: [String]
    let privatePEM: String
    let publicPEM: String

    static let home = SigningTeam(
        teamID: "HOMETEAM01", keyID: "HOMEKEY001",
        apps: [TestApp.home, TestApp.garden])
    /// The same team with the key that is to take over.
    static let homeNext = SigningTeam(
        teamID: "HOMETEAM01", keyID: "HOMEKEY002", apps: [TestApp.home, TestApp.garden])
    static let other = SigningTeam(
        teamID: "OTHERTEAM1", keyID: "OTHERKEY01", apps: [TestApp.other])

    private init(teamID: String, keyID: String, apps: [String]) {
        self.teamID = teamID
        self.keyID = keyID
        self.apps = apps
        do { (privatePEM, publicPEM) = try ES256Key.generate() } catch {
            fatalError("no key: \(error)")
        }
    }

    var simulatorKey: SimulatorKey {
        SimulatorKey(teamID: teamID, keyID: keyID, publicPEM: publicPEM)
    }

    var simulatorApps: [SimulatorApp] {
        apps.map { SimulatorApp(bundleID: $0, teamID: teamID) }
    }

    /// A provider token as another service would sign it.
    /// - Parameter age: the time since its `iat`.
    func providerToken(age: Duration) throws -> String {
        let issuedAt = Int64(Date().timeIntervalSince1970) - age.components.seconds
        let parts = [
            #"{"alg":"ES256","kid":"\#(keyID)"}"#, #"{"iss":"\#(teamID)","iat":\#(issuedAt)}"#,
        ]
        let signed = parts.map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
        let signature = try ES256Key(pem: privatePEM).sign(signed.utf8)
        return "\(signed).\(Base64URL.encode(signature))"
    }
}

/// Bundle identifiers. Events that name no app belong to `home`.
enum TestApp {
    static let home = "com.example.Home"
    /// Of the same team as `home`.
    static let garden = "com.example.Garden"
    static let other = "com.example.Other"
}
