// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// Small values that outlive the app's files and belong to this device alone: the installation's
/// identifier, the App Attest key's. The Keychain on Apple's systems, files elsewhere.
public protocol SecretStore: Sendable {
    func read(_ name: String) throws -> Data?
    /// - Returns: What is stored now: `data`, or what another process has stored before.
    func create(_ name: String, _ data: Data) throws -> Data
    func write(_ name: String, _ data: Data) throws
    func remove(_ name: String) throws
}

extension SecretStore {
    /// The installation's identifier: random, and the same for the app and its extensions.
    package func installation() throws -> String {
        if let data = try read("installation") {
            let identifier = String(decoding: data, as: UTF8.self)
            if Address.isName(identifier) { return identifier }
            try remove("installation")
        }
        return String(
            decoding: try create("installation", Data(UUID().uuidString.utf8)), as: UTF8.self)
    }
}

/// Files that only the owner may read.
public struct FileSecretStore: SecretStore {
    private let folder: URL

    public init(folder: URL) throws {
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        self.folder = folder
    }

    private func file(_ name: String) -> URL { folder.appendingPathComponent(name) }

    public func read(_ name: String) throws -> Data? {
        do {
            return try Data(contentsOf: file(name))
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return nil
        }
    }

    public func create(_ name: String, _ data: Data) throws -> Data {
        if try DurableFile.create(file(name), with: data) { return data }
        return try Data(contentsOf: file(name))
    }

    public func write(_ name: String, _ data: Data) throws {
        try DurableFile.replace(file(name), with: data)
    }

    public func remove(_ name: String) throws {
        try DurableFile.remove(file(name))
    }
}
