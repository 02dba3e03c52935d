// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

#if canImport(Security)
    import Foundation
    import LamplighterClientCore
    import Security

    /// Generic passwords in an access group that the app shares with its extensions. They stay on this
    /// device, outlive the app's deletion, and can be read from the first unlock after a start.
    public struct KeychainSecretStore: SecretStore {
        public struct Failure: Error {
            public var status: OSStatus
        }

        private let group: String

        /// - Parameter group: An access group of the target's entitlements: an app group, or
        ///   `keychain-access-groups` with the team's prefix.
        public init(group: String) { self.group = group }

        public func read(_ name: String) throws -> Data? {
            var query = item(name)
            query[kSecReturnData] = true
            query[kSecMatchLimit] = kSecMatchLimitOne
            var result: CFTypeRef?
            let status = SecItemCopyMatching(Self.dictionary(query), &result)
            switch status {
            case errSecSuccess: return result as? Data
            case errSecItemNotFound: return nil
            default: throw Failure(status: status)
            }
        }

        public func create(_ name: String, _ data: Data) throws -> Data {
            let status = SecItemAdd(Self.dictionary(new(name, data)), nil)
            switch status {
            case errSecSuccess: return data
            // The app or another extension was first.
            case errSecDuplicateItem: return try read(name) ?? data
            default: throw Failure(status: status)
            }
        }

        public func write(_ name: String, _ data: Data) throws {
            let status = SecItemUpdate(
                Self.dictionary(item(name)), Self.dictionary([kSecValueData: data]))
            switch status {
            case errSecSuccess: return
            case errSecItemNotFound:
                let added = SecItemAdd(Self.dictionary(new(name, data)), nil)
                guard added == errSecSuccess else { throw Failure(status: added) }
            default: throw Failure(status: status)
            }
        }

        public func remove(_ name: String) throws {
            let status = SecItemDelete(Self.dictionary(item(name)))
            guard status == errSecSuccess || status == errSecItemNotFound else {
                throw Failure(status: status)
            }
        }

        private func item(_ name: String) -> [CFString: Any] {
            [
                kSecClass: kSecClassGenericPassword,
                kSecAttrService: "lamplighter",
                kSecAttrAccount: name,
                kSecAttrAccessGroup: group,
                // On macOS: the Keychain of iOS, which has access groups.
                kSecUseDataProtectionKeychain: true,
            ]
        }

        private func new(_ name: String, _ data: Data) -> [CFString: Any] {
            var item = item(name)
            item[kSecValueData] = data
            item[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            return item
        }

        private static func dictionary(_ items: [CFString: Any]) -> CFDictionary {
            NSDictionary(dictionary: items) as CFDictionary
        }
    }
#endif
