// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import FleetKit
internal import Foundation
internal import OpenSSL
internal import PushModel

/// A simulator on free ports with two teams, and the files its clients need; ended with the test.
final class SimulatorFixture {
    static let bundleID = "com.example.Home"
    static let token = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"

    let simulator: APNSSimulator
    let port: UInt16
    let directory: URL

    /// - Parameter change: changes the options; certificate and log path are the fixture's.
    init(_ change: (inout SimulatorOptions) throws -> Void = { _ in }) throws {
        directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        var options = SimulatorOptions()
        options.listeners = PushEnvironment.allCases.map { SimulatorListener(environment: $0) }
        options.certificate = .generated(caFile: directory.appending(path: "ca.pem").path)
        options.logPath = directory.appending(path: "answers.ndjson").path
        options.keys = [SigningTeam.home.simulatorKey, SigningTeam.other.simulatorKey]
        options.apps = [
            SimulatorApp(bundleID: Self.bundleID, teamID: SigningTeam.home.teamID),
            SimulatorApp(bundleID: "com.example.Other", teamID: SigningTeam.other.teamID),
        ]
        try change(&options)
        simulator = try APNSSimulator(options)
        port = try simulator.start()
    }

    deinit {
        simulator.stop()
        try? FileManager.default.removeItem(at: directory)
    }

    var caFile: String { directory.appending(path: "ca.pem").path }

    /// The log as it stands, one object a line.
    func logLines() throws -> [String] {
        try String(contentsOf: directory.appending(path: "answers.ndjson"), encoding: .utf8)
            .split(separator: "\n").map(String.init)
    }

    func url(_ path: String, _ environment: PushEnvironment = .production) -> String {
        "https://localhost:\(simulator.port(of: environment) ?? 0)\(path)"
    }

    /// Waits until `condition` holds, at most a minute; says whether it came to hold.
    static func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
        let patience = Patience()
        while !patience.isOver {
            if try condition() { return true }
            Thread.sleep(forTimeInterval: 0.005)
        }
        return try condition()
    }
}

/// A developer team with a key, made once for all tests.
struct SigningTeam: Sendable {
    let teamID: String
    let keyID: String
    let publicPEM: String
    private let key: ES256Key

    static let home = SigningTeam(teamID: "HOMETEAM01", keyID: "HOMEKEY001")
    static let other = SigningTeam(teamID: "OTHERTEAM1", keyID: "OTHERKEY01")

    init(teamID: String, keyID: String) {
        self.teamID = teamID
        self.keyID = keyID
        do {
            let pair = try ES256Key.generate()
            publicPEM = pair.publicPEM
            key = try ES256Key(pem: pair.privatePEM)
        } catch { fatalError("no key: \(error)") }
    }

    var simulatorKey: SimulatorKey {
        SimulatorKey(teamID: teamID, keyID: keyID, publicPEM: publicPEM)
    }

    /// `bearer` and a provider token.
    /// - Parameter age: seconds since it was issued; negative for the future.
    func bearer(
        age: Int = 0, algorithm: String = "ES256", keyID: String? = nil, teamID: String? = nil
    ) -> String {
        let issuedAt = Int(Date().timeIntervalSince1970) - age
        let header = #"{"alg":"\#(algorithm)","kid":"\#(keyID ?? self.keyID)"}"#
        let claims = #"{"iss":"\#(teamID ?? self.teamID)","iat":\#(issuedAt)}"#
        let signed = Self.encode(Array(header.utf8)) + "." + Self.encode(Array(claims.utf8))
        let signature = (try? key.sign(signed.utf8)) ?? []
        return "bearer \(signed).\(Self.encode(signature))"
    }

    private static func encode(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }
}

/// A program that is not ours, run to its end, or until the patience with it is over.
enum ForeignProgram {
    final class Running {
        fileprivate let process = Process()
        fileprivate let pipe = Pipe()

        var isRunning: Bool { process.isRunning }

        /// Waits for the end.
        func finish() -> (status: Int32, output: String) {
            let process = process
            let patience = Patience()
            DispatchQueue.global().async {
                while process.isRunning, !patience.isOver { usleep(20_000) }
                if process.isRunning { process.terminate() }
            }
            let output = pipe.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            return (process.terminationStatus, String(decoding: output, as: UTF8.self))
        }
    }

    static func start(_ name: String, _ arguments: [String]) throws -> Running {
        let running = Running()
        running.process.executableURL = URL(filePath: "/usr/bin/env")
        running.process.arguments = [name] + arguments
        running.process.standardOutput = running.pipe
        running.process.standardError = running.pipe
        try running.process.run()
        return running
    }

    static func run(
        _ name: String, _ arguments: [String]
    ) throws -> (status: Int32, output: String) {
        try start(name, arguments).finish()
    }
}
