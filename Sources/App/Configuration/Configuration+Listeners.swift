// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
package import HTTPListener
package import PushModel

extension Configuration {
    /// Where probes and metrics are served; nowhere if the port is not set.
    package struct Health: Sendable {
        package var host = "127.0.0.1"
        package var port: Int?
    }

    /// Where an operator's requests are answered; nowhere if the port is not set.
    package struct Admin: Sendable {
        package var host = "127.0.0.1"
        package var port: Int?
        /// The file of the token that each request must carry.
        package var tokenFile: String?
        /// The token of `tokenFile`, as it was when the configuration was loaded.
        package internal(set) var token: Secret?
    }

    package var healthSettings: HTTPListenerSettings? {
        health.port.map {
            var settings = HTTPListenerSettings(name: "health", host: health.host, port: $0)
            settings.limits = .probes
            return settings
        }
    }

    package var adminSettings: HTTPListenerSettings? {
        admin.port.map {
            HTTPListenerSettings(
                name: "admin", host: admin.host, port: $0, token: admin.token)
        }
    }

    func checkListeners(_ reader: inout SettingReader) {
        guard let port = admin.port else { return }
        if admin.tokenFile == nil, !HTTPListenerSettings.isLoopback(admin.host) {
            reader.report(
                ["admin", "tokenFile"],
                wrong: "is missing, and other machines can reach admin.host \(admin.host)",
                remedy: "name the file of a token (\(Admin.tokenRemedy)), or leave out admin.host")
        }
        if port != 0, port == health.port, admin.host == health.host {
            reader.report(
                ["admin", "port"], wrong: "is \(port), as is health.port",
                remedy: "give each a port of its own")
        }
    }
}

// MARK: The token

extension Configuration.Admin {
    /// The largest file of a token that is read.
    static let tokenFileBytesMax = 4096
    /// The shortest token that is accepted. Nothing slows down who guesses.
    static let tokenLengthMin = 16
    static let tokenRemedy = "openssl rand -hex 32 makes one"

    /// Reads the token, if a file of one is configured.
    mutating func readToken(_ reader: inout SettingReader) {
        guard let tokenFile else { return }
        do throws(Complaint) {
            token = try Self.token(in: tokenFile)
        } catch {
            reader.report(["admin", "tokenFile"], wrong: error.wrong, remedy: error.remedy)
        }
    }

    /// Reads a token from its file. White space around it does not count.
    package static func token(in file: String) throws(Complaint) -> Secret {
        if let complaint = Configuration.complaint(of: file, isSecret: true) { throw complaint }
        let target = URL(fileURLWithPath: file).resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: target)
        guard attributes?[.type] as? FileAttributeType == .typeRegular,
            let size = attributes?[.size] as? Int, size <= tokenFileBytesMax,
            let data = try? Data(contentsOf: URL(fileURLWithPath: file))
        else {
            throw Complaint(
                wrong: "is \(file), which is no file of up to \(tokenFileBytesMax) bytes",
                remedy: "put nothing but the token there; \(tokenRemedy)")
        }
        let text = SecretText.trimmed(String(decoding: data, as: UTF8.self))
        // The characters that RFC 6750 allows in a bearer token.
        guard let match = text.wholeMatch(of: /\s*([A-Za-z0-9._~+\/-]+=*)\s*/),
            match.1.count >= tokenLengthMin
        else {
            throw Complaint(
                wrong: "is \(file), which holds no token",
                remedy: "write at least \(tokenLengthMin) letters, digits and . _ ~ + / - = into "
                    + "it; \(tokenRemedy)")
        }
        return Secret(String(match.1))
    }
}

// MARK: Keys

extension SettingType where Value == String {
    fileprivate static var listenerHost: Self {
        .text("a host name or an address", matching: #"[^\s/]{1,255}"#)
    }
}

extension Configuration.Health {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "host", \.host, .listenerHost,
                "The address to listen on; in a container `0.0.0.0` or `::`."),
            .optional(
                "port", \.port, .integer(0...65_535),
                "Without it nothing listens. 0 lets the system choose, and the log says what."),
        ]
    }
}

extension Configuration.Admin {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "host", \.host, .listenerHost,
                "The address to listen on. Any but a loopback one needs `tokenFile`."),
            .optional(
                "port", \.port, .integer(0...65_535),
                "Without it nothing listens. 0 lets the system choose, and the log says what."),
            .optional(
                "tokenFile", \.tokenFile, .file,
                "A file with the token that each request must carry, as `Authorization: Bearer`. "
                    + "It is read at the start."),
        ]
    }
}
