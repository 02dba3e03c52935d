// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// What a snapshot is about: everything below one of the registrar's paths.
public struct Address: Hashable, Sendable {
    public var environment: PushEnvironment
    /// The app's bundle identifier, also in an extension.
    public var app: String
    public var installation: String
    /// None: the whole installation.
    public var tokenClass: TokenClass?
    /// None: all handlers of the class.
    public var handler: String?

    /// `app`, `installation` and `handler` each match `[A-Za-z0-9._~-]{1,128}`.
    ///
    /// - Throws: ``InvalidName``, since a name becomes a part of a URL and of a file's name.
    public init(
        environment: PushEnvironment, app: String, installation: String,
        tokenClass: TokenClass? = nil, handler: String? = nil
    ) throws {
        for name in [app, installation, handler].compactMap({ $0 }) where !Self.isName(name) {
            throw InvalidName(name: name)
        }
        self.environment = environment
        self.app = app
        self.installation = installation
        self.tokenClass = tokenClass
        self.handler = handler
    }

    public struct InvalidName: Error, Equatable, CustomStringConvertible {
        public var name: String
        public var description: String {
            "'\(name)' is no name: use 1 to 128 of the characters A-Z a-z 0-9 . _ ~ -"
        }
    }

    /// `.` and `..` have a meaning of their own in paths.
    static func isName(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count) && text != "." && text != ".."
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
                    UInt8(ascii: "~"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    /// A name made of a Swift type's: what a name must not contain becomes `-`.
    public static func handlerName(of type: Any.Type) -> String {
        let name = String(describing: type).unicodeScalars.map { scalar in
            isName(String(scalar)) || scalar == "." ? String(scalar) : "-"
        }
        return String(name.joined().prefix(128))
    }

    /// The path below the registrar's address.
    var path: String {
        var path =
            "/v1/apps/\(app)/environments/\(environment.rawValue)/installations/\(installation)"
        if let tokenClass {
            path += "/\(tokenClass.rawValue)"
            if let handler { path += "/\(handler)" }
        }
        return path
    }
}

/// What one handler reports, to be sent to the registrar: it replaces what the handler reported before.
public struct Snapshot: Hashable, Sendable {
    public enum Content: Hashable, Sendable {
        /// What the handler's tokens show.
        case targets([Target])
        /// All controls of the installation by handler: a handler not named has none left.
        case controls([String: [Target]])
        /// Nothing is left, and nothing will follow.
        case removal
    }

    public var address: Address
    /// Greater than that of every snapshot before it; at most ``sequenceMax``.
    public var sequence: Int64
    public var content: Content

    /// The largest integer that every JSON parser reads exactly: 2^53 - 1.
    public static let sequenceMax: Int64 = 9_007_199_254_740_991
    /// The largest body that the registrar accepts, in bytes.
    public static let bytesMax = 256 * 1024

    /// The request that sends it, without credentials.
    package func request(to registrar: URL) throws -> Request {
        let base = registrar.absoluteString
        let trimmed = base.hasSuffix("/") ? String(base.dropLast()) : base
        guard let url = URL(string: trimmed + address.path) else {
            throw Address.InvalidName(name: address.path)
        }
        guard content != .removal else { return Request(method: "DELETE", url: url) }
        return Request(
            method: "PUT", url: url, headers: ["Content-Type": "application/json"],
            body: try encoded())
    }
}

extension Snapshot: Codable {
    private enum Key: String, CodingKey {
        case v, environment, app, installation, `class`, handler, sequence, targets, handlers,
            removal
    }

    /// What is kept in the outbox is also the request's body: the registrar ignores members that it
    /// does not know, and compares the others with the path.
    package func encoded() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(1, forKey: .v)
        try container.encode(address.environment, forKey: .environment)
        try container.encode(address.app, forKey: .app)
        try container.encode(address.installation, forKey: .installation)
        try container.encodeIfPresent(address.tokenClass, forKey: .class)
        try container.encodeIfPresent(address.handler, forKey: .handler)
        try container.encode(sequence, forKey: .sequence)
        switch content {
        case .targets(let targets): try container.encode(targets, forKey: .targets)
        case .controls(let handlers): try container.encode(handlers, forKey: .handlers)
        case .removal: try container.encode(true, forKey: .removal)
        }
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        guard try container.decode(Int.self, forKey: .v) == 1 else {
            throw DecodingError.dataCorruptedError(
                forKey: .v, in: container, debugDescription: "another version of the format")
        }
        address = try Address(
            environment: container.decode(PushEnvironment.self, forKey: .environment),
            app: container.decode(String.self, forKey: .app),
            installation: container.decode(String.self, forKey: .installation),
            tokenClass: container.decodeIfPresent(TokenClass.self, forKey: .class),
            handler: container.decodeIfPresent(String.self, forKey: .handler))
        sequence = try container.decode(Int64.self, forKey: .sequence)
        if let targets = try container.decodeIfPresent([Target].self, forKey: .targets) {
            content = .targets(targets)
        } else if let handlers = try container.decodeIfPresent(
            [String: [Target]].self, forKey: .handlers)
        {
            content = .controls(handlers)
        } else {
            guard try container.decode(Bool.self, forKey: .removal) else {
                throw DecodingError.dataCorruptedError(
                    forKey: .removal, in: container, debugDescription: "no content")
            }
            content = .removal
        }
    }
}

extension Snapshot {
    /// A complete set and the removal of an installation make snapshots of handlers needless.
    var replacesHandlers: Bool {
        address.tokenClass == nil || (address.tokenClass == .controls && address.handler == nil)
    }

    func isReplaced(by other: Snapshot) -> Bool {
        address != other.address && sequence < other.sequence
            && address.environment == other.address.environment && address.app == other.address.app
            && address.installation == other.address.installation
            && (other.address.tokenClass == nil || address.tokenClass == other.address.tokenClass)
            && other.replacesHandlers
    }
}
