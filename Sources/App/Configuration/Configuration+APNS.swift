// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
package import PushModel

extension Configuration {
    package struct APNS: Sendable {
        /// The credentials by the names that the user has chosen; at least one.
        package var credentials: [String: Credential] = [:]
        package var endpoints = Endpoints()
        /// Where broadcasts to channels go.
        package var broadcastEndpoints = Endpoints(
            production: Endpoint(host: "api-broadcast.push.apple.com"),
            development: Endpoint(host: "api-broadcast.sandbox.push.apple.com"))
        /// Where channels are made, listed and deleted.
        package var channelEndpoints = Endpoints(
            production: Endpoint(host: "api-manage-broadcast.push.apple.com", port: 2196),
            development: Endpoint(host: "api-manage-broadcast.sandbox.push.apple.com", port: 2195))
        /// The PEM file of trusted roots for all endpoints; nil for the system's.
        package var caFile: String?
        package var transport = Transport.auto
        /// The HTTP proxy as `http://[user:password@]host:port`; nil for none.
        package var proxy: Secret?
        /// The fewest connections of one pool on one delivery thread.
        package var connections = 1
        /// The most connections of one pool on one delivery thread; `connections` if that is more.
        package var connectionsMax = 8
        package var limits = ConnectionLimits()
        /// Push types beyond those of this release, by their names.
        package var pushTypes: [String: AddedPushType] = [:]
    }
}

extension Configuration.APNS {
    /// The signing keys of a team and what they may sign for.
    package struct Credential: Sendable {
        package var team = ""
        /// The key ID; if nil, the name of the key's file contains it.
        package var keyID: String?
        /// The key's .p8 file. Exactly one of `keyFile`, `keyFolder`, `providerTokenFile` and `key` is
        /// set. Paths are relative to the configuration file's folder.
        package var keyFile: String?
        package var keyFolder: String?
        /// The file of a key that will replace the one of `keyFile` or `key`. It need not exist
        /// yet.
        package var nextKeyFile: String?
        package var nextKeyID: String?
        /// The file of a provider token that another service renews.
        package var providerTokenFile: String?
        /// The text of a .p8 file, which only the environment can supply.
        package var key: Secret?
        /// The bundle identifiers of the apps that the credential signs for; at least one.
        package var apps: [String] = []
        package var environments: [PushEnvironment] = [.production, .development]

        /// The key ID in a file name of Apple's form, `AuthKey_FGHIJ67890.p8`; nil for another
        /// name.
        package static func keyID(inNameOf file: String) -> String? {
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
        /// The name that the certificate must have; nil for `host`.
        package var serverName: String?
        /// The PEM file of trusted roots for this endpoint; nil for `apns.caFile`.
        package var caFile: String?
    }

    /// Where pushes, broadcasts and the management of channels go, by the names of their keys.
    static var endpointSets: [(name: String, path: WritableKeyPath<Self, Endpoints>)] {
        [
            ("endpoints", \.endpoints), ("broadcastEndpoints", \.broadcastEndpoints),
            ("channelEndpoints", \.channelEndpoints),
        ]
    }

    package enum Transport: String, CaseIterable, Sendable {
        case auto, nghttp2, curl
    }

    /// The file of the roots that verify the endpoint's certificate; nil for the system's.
    package func caFile(for endpoint: Endpoint) -> String? { endpoint.caFile ?? caFile }

    /// Where the pushes of a pool go.
    package func endpoint(of pool: Pool) -> Endpoint {
        (pool.isForBroadcasts ? broadcastEndpoints : endpoints)[pool.environment]
    }

    /// The transport to use: `auto` is resolved to `curl` with a proxy and `nghttp2` without.
    package var chosenTransport: Transport {
        transport == .auto ? (proxy == nil ? .nghttp2 : .curl) : transport
    }

    /// The fewest and the most connections of one pool on one delivery thread.
    package var connectionBounds: ClosedRange<Int> {
        connections...max(connections, connectionsMax)
    }

    /// The credential that signs for an app in an environment, and its name; nil if there is none.
    package func credential(
        for app: String, in environment: PushEnvironment
    ) -> (name: String, credential: Credential)? {
        credentials.first {
            $0.value.apps.contains(app) && $0.value.environments.contains(environment)
        }.map { ($0.key, $0.value) }
    }
}
