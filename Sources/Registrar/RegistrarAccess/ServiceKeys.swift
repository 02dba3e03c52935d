// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
package import PushModel

/// The keys of backends, as a file has them: one a line, with an identifier, the SHA-256 of the key
/// in hexadecimal, and the apps that it may write, separated by commas, or `*`.
///
/// A plain hash is right here, unlike for passwords: a key is 32 random bytes, which no list of
/// likely keys holds, so that a slow hash would cost each request and protect nothing.
struct ServiceKeys: Sendable {
    private struct Key: Sendable {
        let id: String
        let digest: [UInt8]
        let apps: Names
    }

    static let bytesMax = 1 << 20
    /// What begins every key, so that it is recognised in a header, and in a leak.
    static let prefix = "llr_"
    /// Each request is compared with every key.
    static let keysMax = 1000

    private var keys: [Key] = []

    /// - Throws: what is wrong, with the number of the line.
    init(_ bytes: [UInt8]) throws(FileFault) {
        // A file that is being written is empty for a moment.
        guard !bytes.isEmpty else {
            throw FileFault("is empty; a file without keys has a comment at least")
        }
        var seen: Set<String> = []
        for (number, text) in try AccessFile.lines(of: bytes) {
            let key: Key
            do throws(FileFault) { key = try Self.key(text) } catch {
                throw FileFault("has a wrong line \(number): \(error)")
            }
            guard seen.insert(key.id).inserted else {
                throw FileFault("has the identifier of line \(number) twice")
            }
            keys.append(key)
        }
        guard keys.count <= Self.keysMax else {
            throw FileFault("has more than \(Self.keysMax) keys")
        }
    }

    private static func key(_ line: Substring) throws(FileFault) -> Key {
        let parts = line.split(whereSeparator: \.isWhitespace).map(String.init)
        guard parts.count == 3 else {
            throw FileFault("a line has an identifier, the key's SHA-256 and the apps")
        }
        guard ServiceKey.isID(parts[0]) else {
            throw FileFault("an identifier has 1 to 64 of A-Z a-z 0-9 . _ ~ -")
        }
        guard !parts[1].hasPrefix(prefix) else {
            throw FileFault("it has a key where the key's SHA-256 belongs")
        }
        guard let digest = Hexadecimal.decode(parts[1]), digest.count == SHA256Digest.bytes else {
            throw FileFault("a SHA-256 has 64 hexadecimal digits")
        }
        let apps = parts[2].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard apps == ["*"] || apps.allSatisfy(ServiceKey.isApp) else {
            throw FileFault("the apps are bundle identifiers separated by commas, or *")
        }
        return Key(id: parts[0], digest: digest, apps: Names(apps))
    }

    var count: Int { keys.count }

    /// The caller who has this key. Every key is compared, and each comparison takes the same time
    /// wherever the two differ.
    func caller(with key: String) -> Caller? {
        assert(
            keys.allSatisfy { $0.digest.count == SHA256Digest.bytes },
            "a service key's digest is a SHA-256 of 32 bytes: no other could be equal to one")
        let digest = SHA256Digest.of(Array(key.utf8))
        var found: Int?
        for index in keys.indices where ConstantTime.isEqual(digest, keys[index].digest) {
            found = index
        }
        return found.map {
            Caller(id: "service:\(keys[$0].id)", rights: Rights(apps: keys[$0].apps))
        }
    }
}

/// A new key of a backend: what `lamplighter registrar-key create` prints once and keeps nowhere.
package struct ServiceKey: Sendable {
    /// What the backend sends after `Bearer `.
    package let key: Secret
    /// What the file of keys gets, without a line end.
    package let line: String

    /// - Parameters:
    ///   - id: names the backend in logs: 1 to 64 of A-Z a-z 0-9 . _ ~ -
    ///   - apps: bundle identifiers; empty for all apps.
    /// - Returns: nil if the identifier or an app is none.
    package static func make(id: String, apps: [String]) -> ServiceKey? {
        guard isID(id), apps.allSatisfy(isApp) else { return nil }
        let key = ServiceKeys.prefix + Base64URL.encode(RandomBytes.make(32))
        let digest = Hexadecimal.encode(SHA256Digest.of(Array(key.utf8)))
        let names = apps.isEmpty ? "*" : apps.joined(separator: ",")
        let line = "\(id) \(digest) \(names)"
        assert(
            (try? ServiceKeys(Array(line.utf8)))?.count == 1,
            "the line that is made is one of a key in a file of service keys")
        return ServiceKey(key: Secret(key), line: line)
    }

    static func isID(_ text: String) -> Bool { isName(text, bytesMax: 64) }

    static func isApp(_ text: String) -> Bool { isName(text, bytesMax: 128) }

    private static func isName(_ text: String, bytesMax: Int) -> Bool {
        (1...bytesMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { character in
                switch character {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
                    UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }
}
