// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
internal import Foundation
internal import Glibc
internal import HTTPListener
internal import PushModel
internal import Testing

@testable internal import Worker

@Suite final class `The configuration of admin` {
    private let path = FileManager.default.temporaryDirectory
        .appendingPathComponent("token-\(UInt64.random(in: 0 ... .max))").path

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file of a token, and returns its path.
    private func file(_ text: String, mode: Int = 0o600) throws -> String {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    @Test func `nothing listens without a port`() throws {
        #expect(try configuration("admin: {host: localhost}").adminSettings == nil)
        let settings = try #require(try configuration("admin: {port: 9465}").adminSettings)
        #expect(settings.host == "127.0.0.1" && settings.port == 9465 && settings.token == nil)
        #expect(settings.name == "admin")
    }

    @Test func `a probe's connection is read no body from, and ends soon`() throws {
        let settings = try #require(try configuration("health: {port: 9464}").healthSettings)
        #expect(settings.limits.bodyBytesMax == 0)
        #expect(settings.limits.connectionLifetimeMax == .seconds(10))
        #expect(settings.limits.connectionsPerPeerMax * 4 == settings.limits.connectionsMax)
        #expect(settings.limits.requestsPerSecondMax == 20)
        let admin = try #require(try configuration("admin: {port: 9465}").adminSettings)
        #expect(admin.limits.requestsPerSecondMax == 100)
    }

    @Test(arguments: [
        "0.0.0.0", "::", "10.0.0.7", "worker-1.example", "127.worker.example.com", "127.0.0.256",
    ])
    func `an address that other machines reach needs a token`(host: String) throws {
        let yaml = "admin: {host: \"\(host)\", port: 9465}"
        #expect(
            problems(in: yaml) == [
                "admin.tokenFile: is missing, and other machines can reach admin.host \(host); name "
                    + "the file of a token (openssl rand -hex 32 makes one), or leave out admin.host"
            ])
        let file = try file("0123456789abcdef\n")
        let settings = try configuration(yaml, ["LAMPLIGHTER_ADMIN_TOKENFILE": file]).adminSettings
        #expect(settings?.token?.text == "0123456789abcdef")
        #expect(problems(in: "admin: {host: \"\(host)\"}") == [], "nothing listens there")
    }

    @Test(arguments: ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
    func `an address of this machine alone needs no token`(host: String) throws {
        #expect(problems(in: "admin: {host: \"\(host)\", port: 9465}") == [])
    }

    @Test(arguments: [
        "", "\n", "0123456789abcde", "two words that are long enough", "0123456789abcdef\u{0}",
        "0123456789abcdef\nX-Other: 1", "schlüssel-schlüssel",
    ])
    func `a file that holds no token is refused without quoting it`(text: String) throws {
        let file = try file(text)
        let found = problems(in: "", ["LAMPLIGHTER_ADMIN_TOKENFILE": file])
        #expect(
            found == [
                "admin.tokenFile: is \(file), which holds no token; write at least 16 letters, "
                    + "digits and . _ ~ + / - = into it; openssl rand -hex 32 makes one"
            ])
    }

    @Test func `a file that can be no token's is refused unread`() throws {
        let long = try file(String(repeating: "a", count: 4097))
        let pipe = path + ".pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        defer { unlink(pipe) }
        for file in [long, pipe] {
            let found = problems(in: "", ["LAMPLIGHTER_ADMIN_TOKENFILE": file])
            #expect(found.count == 1)
            #expect(found.first?.contains("which is no file of up to 4096 bytes") == true)
        }
        let missing = problems(in: "", ["LAMPLIGHTER_ADMIN_TOKENFILE": "/nowhere/token"])
        #expect(missing.first?.contains("is /nowhere/token, which does not exist") == true)
        let open = try file("0123456789abcdef", mode: 0o666)
        let found = problems(in: "", ["LAMPLIGHTER_ADMIN_TOKENFILE": open])
        #expect(found.first?.contains("run chmod o-w on it") == true)
    }

    @Test func `the token is shown nowhere`() throws {
        let file = try file("hunter-0123456789")
        let configuration = try configuration("", ["LAMPLIGHTER_ADMIN_TOKENFILE": file])
        var dumped = ""
        dump(configuration, to: &dumped)
        dump(configuration.adminSettings, to: &dumped)
        #expect(configuration.admin.token?.text == "hunter-0123456789")
        #expect(!(dumped + configuration.description).contains("hunter"))
    }

    @Test func `both listeners need a port of their own`() {
        #expect(
            problems(in: "{health: {port: 9464}, admin: {port: 9464}}") == [
                "admin.port: is 9464, as is health.port; give each a port of its own"
            ])
        #expect(problems(in: "{health: {port: 0}, admin: {port: 0}}") == [])
    }
}
