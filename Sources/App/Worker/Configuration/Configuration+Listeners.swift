// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import HTTPListener
internal import PushModel

extension Configuration {
    /// An address for HTTP; nothing listens where the port is not set.
    package struct Listener: Sendable {
        package var host = "127.0.0.1"
        package var port: Int?
    }

    package var healthSettings: HTTPListenerSettings? { settings(of: health, name: "health") }

    private func settings(of listener: Listener, name: String) -> HTTPListenerSettings? {
        listener.port.map { HTTPListenerSettings(name: name, host: listener.host, port: $0) }
    }
}

extension Configuration.Listener {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "host", \.host, .text("a host name or an address", matching: #"[^\s/]{1,255}"#),
                "The address to listen on; in a container `0.0.0.0` or `::`."),
            .optional(
                "port", \.port, .integer(0...65_535),
                "Without it nothing listens. 0 lets the system choose, and the log says what."),
        ]
    }
}
