// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Foundation
internal import Glibc
internal import LinuxIO

/// The fleet's registrar, and the phones that register with it.
extension ProcessFleet {
    /// The file with the key that the phones call the registrar by.
    package var registrarKeyFile: String { path("registrar.key") }

    package var registrarURL: String { "http://127.0.0.1:\(plan.configuration.registrarPort)" }

    /// Makes the phones' key, which the registrar must know when it starts.
    package func makeRegistrarKey() throws {
        let maker = try FleetProcess(
            "registrar-key", program: plan.programs.lamplighter,
            arguments: [
                "registrar-key", "create", "--id", "phones", "--app", Neighbourhood.app, "--append",
                path(WorkerConfiguration.registrarKeysFile),
            ], log: registrarKeyFile, errors: path("registrar-key.log"))
        guard hasEnded([maker], by: .now + .seconds(60)), case .exited(0) = maker.ending else {
            throw FleetError(
                description: "no key for the registrar: \(tail("registrar-key.log"))")
        }
    }

    /// Whether the registrar owns its partitions and takes registrations.
    package func registrarServes() -> Bool {
        guard let port = registrar?.healthPort else { return false }
        var exchange = HTTPExchange(url: "http://127.0.0.1:\(port)/readyz")
        exchange.timeout = .seconds(1)
        return (try? exchange.perform())?.status == 200
    }

    /// A port that nobody has, for a registrar that is to keep it when it is started again. It is
    /// below those that Linux gives to whoever asks for any: while the registrar is away, such a port
    /// could become another program's, or that of a phone which tries to connect to it.
    package static func freePort() throws -> Int {
        for _ in 0..<100 {
            let port = UInt16.random(in: 20_000..<32_768)
            if try isFree(port) { return Int(port) }
        }
        throw FleetError(description: "no port can be had")
    }

    private static func isFree(_ port: UInt16) throws -> Bool {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard listener >= 0 else { throw FleetError(description: "no socket can be had") }
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        address.sin_port = port.bigEndian
        return withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
