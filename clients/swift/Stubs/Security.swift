// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// swift-format-ignore-file: AlwaysUseLowerCamelCase

// developer.apple.com/documentation/security/keychain-items, and Core Foundation's names.
@_exported import FoundationOnApple

public typealias CFString = NSString
public typealias CFDictionary = NSDictionary
public typealias CFTypeRef = AnyObject
public typealias CFAllocator = AnyObject
public typealias CFError = AnyObject
public typealias OSStatus = Int32

public let errSecSuccess: OSStatus = 0
public let errSecDuplicateItem: OSStatus = -25299
public let errSecItemNotFound: OSStatus = -25300

nonisolated(unsafe) public let kSecClass: CFString = ""
nonisolated(unsafe) public let kSecClassGenericPassword: CFString = ""
nonisolated(unsafe) public let kSecAttrService: CFString = ""
nonisolated(unsafe) public let kSecAttrAccount: CFString = ""
nonisolated(unsafe) public let kSecAttrAccessGroup: CFString = ""
nonisolated(unsafe) public let kSecAttrAccessible: CFString = ""
nonisolated(unsafe) public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = ""
nonisolated(unsafe) public let kSecUseDataProtectionKeychain: CFString = ""
nonisolated(unsafe) public let kSecReturnData: CFString = ""
nonisolated(unsafe) public let kSecMatchLimit: CFString = ""
nonisolated(unsafe) public let kSecMatchLimitOne: CFString = ""
nonisolated(unsafe) public let kSecValueData: CFString = ""

// …/security/secitemcopymatching(_:_:), secitemadd(_:_:), secitemupdate(_:_:), secitemdelete(_:)
public func SecItemCopyMatching(
    _ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?
) -> OSStatus { fatalError() }
public func SecItemAdd(
    _ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?
) -> OSStatus { fatalError() }
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
    fatalError()
}
public func SecItemDelete(_ query: CFDictionary) -> OSStatus { fatalError() }

// …/security/sectaskcreatefromself(_:), sectaskcopyvalueforentitlement(_:_:_:): macOS alone
#if STUBS_OF_MACOS
    public class SecTask {}
    public func SecTaskCreateFromSelf(_ allocator: CFAllocator?) -> SecTask? { fatalError() }
    public func SecTaskCopyValueForEntitlement(
        _ task: SecTask, _ entitlement: CFString,
        _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
    ) -> CFTypeRef? { fatalError() }
#endif
