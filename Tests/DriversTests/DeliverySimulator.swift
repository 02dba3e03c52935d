// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import Foundation
internal import LinuxIO
internal import OpenSSL
internal import PushModel
import TestCertificates

/// An APNs simulator that knows the bench's team, and a directory for its files.
final class DeliverySimulator {
    let simulator: APNSSimulator
    let key: (privatePEM: String, publicPEM: String)
    let port: UInt16
    private let directory: ScratchDirectory

    init(_ change: (inout SimulatorOptions) -> Void = { _ in }) throws {
        directory = try ScratchDirectory()
        key = try ES256Key.generate()
        var options = SimulatorOptions()
        options.certificate = .generated(caFile: directory.file("ca.pem"))
        options.keys = [
            SimulatorKey(
                teamID: DeliveryBench.teamID, keyID: DeliveryBench.keyID, publicPEM: key.publicPEM)
        ]
        options.apps = [
            SimulatorApp(bundleID: DeliveryBench.bundleID, teamID: DeliveryBench.teamID)
        ]
        options.recordRequests = 4096
        change(&options)
        simulator = try APNSSimulator(options)
        port = try simulator.start()
    }

    deinit { simulator.stop() }

    var caFile: String { directory.file("ca.pem") }

    /// A file with a certificate authority that did not sign the simulator's certificate.
    func strangersFile() throws -> String {
        let other = try CertificateAuthority(name: "Somebody else")
        try other.certificatePEM.write(
            toFile: directory.file("other.pem"), atomically: true, encoding: .utf8)
        return directory.file("other.pem")
    }

    func bench(
        _ kind: TransportKind, connections: ClosedRange<Int> = 1...1,
        tokenClass: TokenClass = .control,
        serverName: String = "localhost",
        limits: ConnectionLimits = DeliveryBench.brisk(), host: String = "127.0.0.1",
        lookUp: @escaping Resolver.LookUp = Resolver.system
    ) throws -> DeliveryBench {
        try DeliveryBench(
            kind, to: port, caFile: caFile, privatePEM: key.privatePEM, host: host,
            serverName: serverName, connections: connections, tokenClass: tokenClass,
            limits: limits, lookUp: lookUp)
    }
}

/// A directory that is gone after the test.
final class ScratchDirectory {
    private let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "delivery-\(UUID())")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    var path: String { url.path }

    func file(_ name: String) -> String { url.appending(path: name).path }
}
