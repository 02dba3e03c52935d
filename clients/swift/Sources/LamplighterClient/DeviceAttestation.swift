// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

#if canImport(DeviceCheck)
    import CryptoKit
    @preconcurrency import DeviceCheck
    import Foundation
    import LamplighterClientCore

    /// App Attest. Apple's service works in apps, not in widget extensions: with it, what an extension
    /// registers waits in the outbox until the app runs.
    public struct DeviceAttestation: AttestationService {
        public init() {}

        public var isSupported: Bool { DCAppAttestService.shared.isSupported }

        public func generateKey() async throws -> String {
            try await DCAppAttestService.shared.generateKey()
        }

        public func attestKey(_ keyID: String, clientDataHash: Data) async throws -> Data {
            try await DCAppAttestService.shared.attestKey(keyID, clientDataHash: clientDataHash)
        }

        public func generateAssertion(_ keyID: String, clientDataHash: Data) async throws -> Data {
            try await DCAppAttestService.shared.generateAssertion(
                keyID, clientDataHash: clientDataHash)
        }

        public func sha256(_ data: Data) -> Data { Data(SHA256.hash(data: data)) }
    }

    extension AppAttestAuthorizer {
        /// For an app without a backend of its own.
        ///
        /// - Parameters:
        ///   - registrar: As given to `Lamplighter`.
        ///   - keychainGroup: As given to `Lamplighter`; an app group is one too on iOS.
        public init(registrar: URL, keychainGroup: String) {
            self.init(
                registrar: registrar, service: DeviceAttestation(),
                secrets: KeychainSecretStore(group: keychainGroup))
        }
    }
#endif
