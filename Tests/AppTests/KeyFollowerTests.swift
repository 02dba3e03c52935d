// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Foundation
internal import Logging
internal import PushModel
internal import Synchronization
internal import Testing

@testable internal import APNSDelivery
@testable internal import Configuration
@testable internal import Worker

/// A credential of which another service renews the provider token in a file, and the follower of that
/// file. APNs accepts what `accepts` says.
private final class RenewedToken: Sendable {
    static let start = WallTime(milliseconds: 1_763_712_000_000)

    let file = FileManager.default.temporaryDirectory
        .appendingPathComponent("provider-token-\(UInt64.random(in: 0 ... .max))")
    let keys: SigningKeys
    private let lines = LogLines()
    private let written = Mutex("")
    private let minute = Mutex<Int64>(0)
    private let accepted = Mutex(true)
    private let tried = Mutex<[String]>([])

    init(minute: Int64) throws {
        try Self.text(minute: minute).write(to: file, atomically: true, encoding: .utf8)
        var credential = Configuration.APNS.Credential()
        credential.team = "HOMETEAM01"
        credential.providerTokenFile = file.path
        credential.environments = [.production]
        var apns = Configuration.APNS()
        apns.credentials["home"] = credential
        keys = try SigningKeys(apns)
    }

    deinit { try? FileManager.default.removeItem(at: file) }

    /// A token that was signed so many minutes after the start.
    static func text(minute: Int64, key: String = "HOMEKEY001") -> String {
        let header = #"{"alg":"ES256","kid":"\#(key)"}"#
        let claims = #"{"iss":"HOMETEAM01","iat":\#(start.seconds + minute * 60)}"#
        return [Array(header.utf8), Array(claims.utf8), Array(repeating: 7, count: 64)]
            .map(Base64URL.encode).joined(separator: ".") + "\n"
    }

    func renew(minute: Int64, key: String = "HOMEKEY001") throws {
        try Self.text(minute: minute, key: key)
            .write(to: file, atomically: true, encoding: .utf8)
    }

    func accept(_ isAccepted: Bool) { accepted.withLock { $0 = isAccepted } }

    var tokens: ProviderTokens { keys["home", .production] }

    /// The minute at which the token in use was signed.
    var inUse: Int64 {
        (tokens.keyInUse.ready!.issuedAt - Self.start).components.seconds / 60
    }
    var trials: Int { tried.withLock { $0.count } }

    /// What the log has said so far.
    var log: String {
        written.withLock { written in
            written += lines.taken().joined(separator: "\n")
            return written
        }
    }

    func makeFollower() -> KeyFollower {
        let lines = lines
        let logger = Logger(label: "test") { _ in LineHandler(lines: lines) }
        return KeyFollower(keys, logger: logger) { _, _, key in
            self.tried.withLock { $0.append(key.keyID) }
            return KeyTrial(
                result: self.accepted.withLock { $0 } ? .accepted : .refused,
                reason: "403 InvalidProviderToken")
        } changed: { _, _ in
        }
    }

    /// Looks at the file twice, as a worker does within ten seconds.
    func look(_ follower: inout KeyFollower, minute: Int64) async {
        for second in [Int64(0), 5] {
            await follower.lookAtAll {
                Now(
                    monotonic: MonotonicTime(nanoseconds: (minute * 60 + second) * 1_000_000_000),
                    wall: Self.start + .seconds(minute * 60 + second))
            }
        }
    }
}

@Suite struct `The follower of key files` {
    @Test func `a renewed provider token is tried and then used, without a restart`() async throws {
        let renewed = try RenewedToken(minute: 0)
        var follower = renewed.makeFollower()
        await renewed.look(&follower, minute: 1)
        #expect(renewed.trials == 0)
        try renewed.renew(minute: 45)
        await renewed.look(&follower, minute: 45)
        #expect(renewed.inUse == 45 && renewed.trials == 1)
        #expect(!renewed.tokens.isKeyGone)
        // By the key that is to take over, which has a younger token.
        try renewed.renew(minute: 90, key: "HOMEKEY002")
        await renewed.look(&follower, minute: 90)
        #expect(renewed.tokens.keyInUse.keyID == "HOMEKEY002" && renewed.trials == 2)
    }

    @Test func `a provider token that APNs refuses does not replace the one in use`() async throws {
        let renewed = try RenewedToken(minute: 0)
        var follower = renewed.makeFollower()
        renewed.accept(false)
        try renewed.renew(minute: 30)
        await renewed.look(&follower, minute: 30)
        #expect(renewed.inUse == 0 && renewed.trials == 1)
        #expect(!renewed.tokens.isKeyGone, "the file was replaced, not lost")
        renewed.accept(true)
        await renewed.look(&follower, minute: 31)
        #expect(renewed.inUse == 30)
    }

    @Test func `a provider token that is renewed too often waits for its 20 minutes`() async throws
    {
        let renewed = try RenewedToken(minute: 0)
        var follower = renewed.makeFollower()
        for minute in Int64(1)...19 {
            try renewed.renew(minute: minute)
            await renewed.look(&follower, minute: minute)
        }
        #expect(renewed.inUse == 0 && renewed.trials == 0)
        #expect(renewed.log.contains("was renewed within 20 minutes"))
        await renewed.look(&follower, minute: 20)
        #expect(renewed.inUse == 19 && renewed.trials == 1)
    }

    @Test func `a provider token that APNs has refused is replaced at once`() async throws {
        let renewed = try RenewedToken(minute: 0)
        var follower = renewed.makeFollower()
        renewed.tokens.keyRefused(renewed.tokens.keyInUse.number)
        await renewed.look(&follower, minute: 1)
        try renewed.renew(minute: 2)
        await renewed.look(&follower, minute: 2)
        #expect(renewed.inUse == 2)
        try renewed.renew(minute: 3)
        await renewed.look(&follower, minute: 3)
        #expect(renewed.inUse == 2, "the new one was not refused")
    }

    @Test func `a provider token that was put back is not used again`() async throws {
        let renewed = try RenewedToken(minute: 0)
        var follower = renewed.makeFollower()
        try renewed.renew(minute: 30)
        await renewed.look(&follower, minute: 30)
        try renewed.renew(minute: 0)
        await renewed.look(&follower, minute: 55)
        #expect(renewed.inUse == 30 && renewed.trials == 1)
        #expect(renewed.log.contains("is not newer than the one in use"))
    }

    @Test func `a broken file of a provider token is told, and the token in use stays`()
        async throws
    {
        let renewed = try RenewedToken(minute: 0)
        var follower = renewed.makeFollower()
        try "hunter2".write(to: renewed.file, atomically: true, encoding: .utf8)
        await renewed.look(&follower, minute: 5)
        #expect(renewed.inUse == 0 && renewed.tokens.isKeyGone)
        let log = renewed.log
        #expect(log.contains("it is no JSON Web Token") && !log.contains("hunter2"), "\(log)")
        try renewed.renew(minute: 25)
        await renewed.look(&follower, minute: 25)
        #expect(renewed.inUse == 25 && !renewed.tokens.isKeyGone)
    }
}
