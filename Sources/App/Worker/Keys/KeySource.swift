// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Configuration
internal import FoundationEssentials
internal import PushModel

/// The place of one credential's signing keys: files, a folder of files, or a variable; or of the
/// provider token that another service signs.
struct KeySource: Sendable {
    /// The text of a .p8 file, and its key ID.
    struct KeyText: Hashable, Sendable {
        var keyID: String
        var pem: Secret
        /// Where it comes from, for messages.
        var origin = ""
        /// Whether the text is a provider token, and not the key that signs one.
        var isToken = false

        func key(team: String) throws(ProviderTokenError) -> SigningKey {
            isToken
                ? SigningKey(try ReadyProviderToken(pem.text))
                : try SigningKey(teamID: team, keyID: keyID, pem: pem.text)
        }

        static func == (left: KeyText, right: KeyText) -> Bool {
            left.keyID == right.keyID && left.pem == right.pem
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(keyID)
            hasher.combine(pem)
        }
    }

    /// What one look at the files found.
    struct Look {
        /// The keys. The first is the one to start with.
        var keys: [KeyText] = []
        /// The keys among them that are newer than the first, and are to replace it.
        var newer: Set<KeyText> = []
        /// What is wrong with files, as text for the log.
        var problems: [String] = []
    }

    private let credential: Configuration.APNS.Credential

    init(_ credential: Configuration.APNS.Credential) { self.credential = credential }

    func look() -> Look {
        var look = Look()
        if let key = credential.key {
            look.keys.append(
                KeyText(
                    keyID: credential.keyID ?? "", pem: Secret(SecretText.key(key.text)),
                    origin: "the variable with the key"))
        }
        if let file = credential.keyFile {
            add(file, keyID: credential.keyID, to: &look)
        }
        if let folder = credential.keyFolder { addAll(in: folder, to: &look) }
        if let file = credential.providerTokenFile { addToken(in: file, to: &look) }
        if let file = credential.nextKeyFile, FileManager.default.fileExists(atPath: file) {
            let count = look.keys.count
            add(file, keyID: credential.nextKeyID, to: &look)
            look.newer.formUnion(look.keys[count...])
        }
        assert(look.newer.isSubset(of: look.keys), "the newer keys are among those found")
        return look
    }

    private func add(_ file: String, keyID: String?, to look: inout Look) {
        guard let pem = Self.text(of: file) else {
            look.problems.append("the key file \(file) cannot be read: check its permissions")
            return
        }
        let keyID = keyID ?? Configuration.APNS.Credential.keyID(inNameOf: file) ?? ""
        look.keys.append(KeyText(keyID: keyID, pem: Secret(pem), origin: file))
    }

    /// Adds the keys in a folder. The key that `keyID` names comes first, and the others count as
    /// newer. If it names none of them, the newest file comes first, and the others are its equals.
    private func addAll(in folder: String, to look: inout Look) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        var found: [(key: KeyText, writtenAt: Date)] = []
        for name in names.sorted() {
            guard let keyID = Configuration.APNS.Credential.keyID(inNameOf: name) else { continue }
            let file = "\(folder)/\(name)"
            guard let pem = Self.text(of: file) else {
                look.problems.append("the key file \(file) cannot be read: check its permissions")
                continue
            }
            let target = URL(fileURLWithPath: file).resolvingSymlinksInPath().path
            let attributes = try? FileManager.default.attributesOfItem(atPath: target)
            let writtenAt = attributes?[.modificationDate] as? Date ?? .distantPast
            found.append((KeyText(keyID: keyID, pem: Secret(pem), origin: file), writtenAt))
        }
        if let first = found.firstIndex(where: { $0.key.keyID == credential.keyID }) {
            let key = found.remove(at: first).key
            look.keys = [key] + found.map(\.key)
            look.newer = Set(found.map(\.key))
        } else {
            look.keys = found.sorted { $0.writtenAt > $1.writtenAt }.map(\.key)
        }
        if look.keys.isEmpty, look.problems.isEmpty {
            look.problems.append(
                "\(folder) has no file AuthKey_XXXXXXXXXX.p8, named by Apple for its key ID")
        }
    }

    private func addToken(in file: String, to look: inout Look) {
        guard let text = Self.content(of: file).map(SecretText.trimmed) else {
            look.problems.append(
                "the provider token file \(file) cannot be read: check that it exists, its permissions, "
                    + "and that it holds one token")
            return
        }
        let token: ReadyProviderToken
        do throws(ProviderTokenError) { token = try ReadyProviderToken(text) } catch {
            look.problems.append("\(file): \(error)")
            return
        }
        guard token.teamID == credential.team else {
            look.problems.append(
                "\(file): the provider token is of team \(token.teamID), and the credential of "
                    + "\(credential.team)")
            return
        }
        look.keys.append(
            KeyText(keyID: token.keyID, pem: Secret(text), origin: file, isToken: true))
    }

    /// The largest file accepted; a .p8 file has a few hundred bytes, as has a provider token.
    private static let keyBytesMax = 64 << 10

    private static func text(of file: String) -> String? { content(of: file).map(SecretText.key) }

    private static func content(of file: String) -> String? {
        let target = URL(fileURLWithPath: file).resolvingSymlinksInPath()
        let attributes = try? FileManager.default.attributesOfItem(atPath: target.path)
        guard let size = attributes?[.size] as? Int, size <= keyBytesMax,
            let data = try? Data(contentsOf: target), data.count <= keyBytesMax
        else { return nil }
        return String(validating: data, as: UTF8.self)
    }
}
