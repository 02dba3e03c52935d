// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Testing

/// A Secret as Kubernetes mounts it: files that are links through `..data`, which is replaced whole.
private struct MountedSecret {
    let folder: URL

    func replace(with teams: [SigningTeam]) throws {
        let files = FileManager.default
        let version = "..\(UUID().uuidString)"
        let written = folder.appending(path: version)
        try files.createDirectory(at: written, withIntermediateDirectories: true)
        let names = teams.map { "AuthKey_\($0.keyID).p8" }
        for (team, name) in zip(teams, names) {
            try team.privatePEM.write(
                to: written.appending(path: name), atomically: true, encoding: .utf8)
            let link = folder.appending(path: name).path
            if (try? files.destinationOfSymbolicLink(atPath: link)) == nil {
                try files.createSymbolicLink(
                    atPath: link, withDestinationPath: "..data/\(name)")
            }
        }
        let next = folder.appending(path: "..data_tmp").path
        try files.createSymbolicLink(atPath: next, withDestinationPath: version)
        guard rename(next, folder.appending(path: "..data").path) == 0 else {
            throw Timeout(description: "..data could not be replaced")
        }
        for file in try files.contentsOfDirectory(atPath: folder.path)
        where file.hasPrefix("AuthKey_") && !names.contains(file) {
            try files.removeItem(at: folder.appending(path: file))
        }
    }
}

@Suite(.serialized)
struct `The rotation of a worker's signing key` {
    private static let transports = ["nghttp2", "curl"]

    @Test(arguments: transports)
    func `a new signing key is used from when APNs accepts it, and the old one until then`(
        transport: String
    ) async throws {
        let fleet = try await Fleet(TestPlan(workers: 0, transport: transport))
        defer { fleet.end() }
        let secret = MountedSecret(folder: fleet.directory.appending(path: "secret"))
        try secret.replace(with: [.home])
        try Self.useFolder(secret.folder, of: fleet)
        fleet.simulator.perform(.acceptKey(SigningTeam.homeNext.keyID, false))

        let worker = try fleet.startWorker()
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        try await expectKey(.home, of: token, fleet)

        // APNs does not know the new key yet.
        try secret.replace(with: [.home, .homeNext])
        try await fleet.eventually("the refusal of the new key") {
            worker.output.split(separator: "\n").contains {
                $0.contains("APNs refuses another signing key")
                    && $0.contains("403 InvalidProviderToken")
            }
        }
        try await expectKey(.home, of: token, fleet)

        fleet.simulator.perform(.acceptKey(SigningTeam.homeNext.keyID, true))
        try await fleet.eventually("the acceptance of the new key") {
            worker.output.split(separator: "\n").contains {
                $0.contains("APNs accepts another signing key") && $0.contains("production")
            }
        }
        try await expectKey(.homeNext, of: token, fleet)

        // The old one is revoked, and its file goes.
        fleet.simulator.perform(.acceptKey(SigningTeam.home.keyID, false))
        try await expectKey(.homeNext, of: token, fleet)
        try secret.replace(with: [.homeNext])
        try await Task.sleep(for: .seconds(12))
        try await expectKey(.homeNext, of: token, fleet)

        #expect(!worker.output.contains("pushes wait"), "no breaker has opened")
        let refused = fleet.requests(for: token).filter { $0.answer.status != 200 }
        #expect(refused.isEmpty)
        #expect(!worker.output.contains("PRIVATE KEY"))
    }

    /// The worker was started with both, and one is revoked.
    @Test func `another signing key takes over at once when APNs refuses the one in use`()
        async throws
    {
        let fleet = try await Fleet(TestPlan(workers: 0))
        defer { fleet.end() }
        let secret = MountedSecret(folder: fleet.directory.appending(path: "secret"))
        try secret.replace(with: [.homeNext, .home])
        try Self.useFolder(secret.folder, of: fleet)
        let worker = try fleet.startWorker()
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        try await fleet.change("door", heardBy: token)
        let first = try #require(Self.keyID(of: token, fleet))
        let second = Set([SigningTeam.home.keyID, SigningTeam.homeNext.keyID]).subtracting([first])

        fleet.simulator.perform(.acceptKey(first, false))
        try await fleet.change("door", heardBy: token)
        #expect(Self.keyID(of: token, fleet) == second.first)
        #expect(worker.output.contains("APNs accepts another signing key"))
    }

    @Test(arguments: transports)
    func `a worker without a key sends with the provider tokens that another service renews`(
        transport: String
    ) async throws {
        let fleet = try await Fleet(TestPlan(workers: 0, transport: transport))
        defer { fleet.end() }
        let file = fleet.directory.appending(path: "provider-token")
        let old = try SigningTeam.home.providerToken(age: .seconds(25 * 60))
        try old.write(to: file, atomically: true, encoding: .utf8)
        try Self.use("providerTokenFile: \(file.path)", of: fleet)
        let worker = try fleet.startWorker()
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        try await fleet.change("door", heardBy: token)
        #expect(fleet.requests(for: token).last?["authorization"] == "bearer \(old)")

        let new = try SigningTeam.home.providerToken(age: .zero)
        try new.write(to: file, atomically: true, encoding: .utf8)
        try await fleet.eventually("the acceptance of the new token") {
            worker.output.split(separator: "\n").contains {
                $0.contains("APNs accepts another signing key") && $0.contains("production")
            }
        }
        try await fleet.change("door", heardBy: token)
        #expect(fleet.requests(for: token).last?["authorization"] == "bearer \(new)")

        let refused = fleet.requests(for: token).filter { $0.answer.status != 200 }
        #expect(refused.isEmpty)
        #expect(!worker.output.contains(old.suffix(40)) && !worker.output.contains(new.suffix(40)))
    }

    private static func useFolder(_ folder: URL, of fleet: Fleet) throws {
        try use("keyFolder: \(folder.path)", of: fleet)
    }

    /// Replaces the key of the credential `home`.
    private static func use(_ key: String, of fleet: Fleet) throws {
        let text = try String(contentsOf: fleet.configurationFile, encoding: .utf8)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).compactMap {
            line -> String? in
            if line.contains("keyID: \(SigningTeam.home.keyID)") { return nil }
            guard line.contains("keyFile:"), line.contains(SigningTeam.home.keyID) else {
                return String(line)
            }
            return "      \(key)"
        }
        try lines.joined(separator: "\n")
            .write(to: fleet.configurationFile, atomically: true, encoding: .utf8)
    }

    /// Of the last push that was accepted.
    private static func keyID(of token: TestToken, _ fleet: Fleet) -> String? {
        let accepted = fleet.requests(for: token).last { $0.answer.status == 200 }
        return ProviderTokenText(accepted?["authorization"])?.header["kid"]
    }

    private func expectKey(
        _ team: SigningTeam, of token: TestToken, _ fleet: Fleet
    ) async throws {
        try await fleet.change("door", heardBy: token)
        #expect(Self.keyID(of: token, fleet) == team.keyID)
    }
}
