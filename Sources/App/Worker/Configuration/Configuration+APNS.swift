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
    /// The signing keys of a team and what they may sign for.
    package struct Credential: Sendable {
        package var team = ""
        /// Where it is nil the name of the key's file says it.
        package var keyID: String?
        /// Exactly one of `keyFile`, `keyFolder` and `key` is set. Relative to the configuration
        /// file's folder, like the others.
        package var keyFile: String?
        package var keyFolder: String?
        /// A key that is to take the place of `keyFile`'s or `key`'s. It need not be there yet.
        package var nextKeyFile: String?
        package var nextKeyID: String?
        /// The text of a .p8 file; from the environment only.
        package var key: Secret?
        /// Bundle identifiers; at least one.
        package var apps: [String] = []
        package var environments: [PushEnvironment] = [.production, .development]

        /// The key ID in a name such as Apple gives to its files, `AuthKey_FGHIJ67890.p8`.
        static func keyID(inNameOf file: String) -> String? {
            let name = file.split(separator: "/").last ?? ""
            guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
            let keyID = name.dropFirst("AuthKey_".count).dropLast(".p8".count)
            let isKeyID = keyID.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0)
            }
            return isKeyID && keyID.utf8.count == 10 ? String(keyID) : nil
        }
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
