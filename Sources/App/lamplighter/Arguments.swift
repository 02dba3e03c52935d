// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint
import Foundation
import PushModel
import Worker

/// Parses words of the command line.
enum Arguments {
    static func environment(_ word: String) throws -> PushEnvironment {
        guard let environment = PushEnvironment(name: word) else {
            throw ValidationError("'\(word)' is not an environment: production or development")
        }
        return environment
    }

    static func app(_ name: String, in routing: RoutingTable) throws -> AppID {
        guard let app = routing.app(named: name) else {
            throw Failure(
                .configuration,
                "no credential serves \(TerminalText.visible(name)): see apns.credentials")
        }
        return app
    }

    static func tokenClass(_ name: String) throws -> TokenClass {
        guard let tokenClass = TokenClass(name: name) else {
            throw ValidationError(
                "'\(TerminalText.visible(name))' is not a class of token: "
                    + TokenClass.allCases.map(\.name).joined(separator: ", "))
        }
        return tokenClass
    }

    static func pushType(_ name: String) throws -> PushType {
        guard let type = PushType(name: name) else {
            throw ValidationError(
                "'\(name)' is not a push type: "
                    + PushType.all.map(\.name).joined(separator: ", "))
        }
        return type
    }

    static func token(_ hexadecimal: String) throws -> [UInt8] {
        guard let token = Hexadecimal.decode(hexadecimal), token.count <= 512 else {
            throw ValidationError("a token is hexadecimal, of even length, at most 1024 digits")
        }
        return token
    }

    static func channelID(_ base64: String) throws -> ChannelID {
        guard let channel = ChannelID(base64: base64), channel.bytes.count <= 512 else {
            throw ValidationError(
                "'\(base64)' is not a channel's ID: it is base64, with its padding")
        }
        return channel
    }

    /// Runs a check of `RecordTrial` and translates its error: to a wrong argument if the record is
    /// at fault, otherwise to a wrong configuration.
    static func trying<Found>(_ body: () throws(UselessRecord) -> Found) throws -> Found {
        do throws(UselessRecord) { return try body() } catch {
            if error.lacksConfiguration { throw Failure(.configuration, error.message) }
            throw ValidationError(error.message)
        }
    }

    /// The content of a file, or of standard input for "-".
    static func contents(of file: String, option: String = "--file") throws -> [UInt8] {
        do {
            if file == "-" { return Array(try FileHandle.standardInput.readToEnd() ?? Data()) }
            return Array(try Data(contentsOf: URL(filePath: file)))
        } catch {
            throw Failure(.configuration, "\(option): \(file) \(whyUnreadable(file))")
        }
    }

    private static func whyUnreadable(_ file: String) -> String {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: file, isDirectory: &isFolder) else {
            return "does not exist"
        }
        if isFolder.boolValue { return "is a folder: name a file, or - for standard input" }
        return FileManager.default.isReadableFile(atPath: file)
            ? "cannot be read" : "cannot be read: this user has no right to"
    }
}
