// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
package import PushModel

extension Configuration {
    package struct APNS: Sendable {
        /// By the user's name for it; at least one.
        package var credentials: [String: Credential] = [:]
        package var endpoints = Endpoints()
        /// PEM file of trusted roots for both endpoints; nil for the system's.
        package var caFile: String?
        package var transport = Transport.auto
        /// `http://[user:password@]host:port`.
        package var proxy: Secret?
        /// Of one pool on one delivery thread, at least.
        package var connections = 1
        /// At most; where `connections` is more, that.
        package var connectionsMax = 8
        package var limits = ConnectionLimits()
    }
}

extension Configuration.APNS {
    /// One signing key and what it may sign for.
    package struct Credential: Sendable {
        package var team = ""
        package var keyID = ""
        /// Exactly one of `keyFile` and `key` is set. Relative to the configuration file's folder.
        package var keyFile: String?
        /// The text of a .p8 file; from the environment only.
        package var key: Secret?
        /// Bundle identifiers; at least one.
        package var apps: [String] = []
        package var environments: [PushEnvironment] = [.production, .development]
    }

    package struct Endpoints: Sendable {
        package var production = Endpoint(host: PushEnvironment.production.defaultHost)
        package var development = Endpoint(host: PushEnvironment.development.defaultHost)

        package subscript(environment: PushEnvironment) -> Endpoint {
            switch environment {
            case .production: production
            case .development: development
            }
        }
    }

    package struct Endpoint: Sendable, Equatable {
        package var host: String
        package var port = 443
        /// The name in the certificate; nil for `host`.
        package var serverName: String?
        /// Instead of `apns.caFile`.
        package var caFile: String?
    }

    package enum Transport: String, CaseIterable, Sendable {
        case auto, nghttp2, curl
    }

    /// The roots that the endpoint's certificate is verified against; nil for the system's.
    package func caFile(for environment: PushEnvironment) -> String? {
        endpoints[environment].caFile ?? caFile
    }

    /// What `transport` comes to; never `auto`.
    package var chosenTransport: Transport {
        transport == .auto ? (proxy == nil ? .nghttp2 : .curl) : transport
    }

    /// Of one pool on one delivery thread.
    package var connectionBounds: ClosedRange<Int> {
        connections...max(connections, connectionsMax)
    }

    /// The credential that signs for an app in an environment, with its name.
    package func credential(
        for app: String, in environment: PushEnvironment
    ) -> (name: String, credential: Credential)? {
        credentials.first {
            $0.value.apps.contains(app) && $0.value.environments.contains(environment)
        }.map { ($0.key, $0.value) }
    }
}
