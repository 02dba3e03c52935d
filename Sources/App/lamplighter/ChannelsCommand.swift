// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Curl
import Entrypoint
import Foundation
import PushModel
import RecordFormats

struct ChannelsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "channels",
        abstract: "Makes, lists and deletes an app's broadcast channels at APNs.",
        discussion: """
            A Live Activity that subscribes to a channel is updated by one request for all devices. \
            Channels are bound to subjects by registrations of class channel: see docs/events.md. \
            Exit codes: 0; 1 refused by APNs; 69 no answer.
            """,
        subcommands: [Create.self, List.self, Read.self, Delete.self])

    /// Whose channels they are.
    struct Scope: ParsableArguments {
        @OptionGroup var options: ConfigurationOption

        @Option(help: "production or development. A channel cannot be moved to the other.")
        var environment: String

        @Option(help: "The app's bundle identifier.")
        var app: String

        @Option(
            help: "The name of the credential that signs; by default the one that serves the app.")
        var credential: String?

        func perform(_ action: ChannelRequest.Action) throws -> HTTPExchange.Answer {
            guard RecordKey.isPart(app) else {
                throw ValidationError("'\(app)' is not a bundle identifier")
            }
            let request = try ChannelRequest(
                action, app: app, environment: try Arguments.environment(environment),
                credential: credential, try options.load().apns)
            do {
                return try request.perform()
            } catch let refusal as ChannelRefusal {
                StandardError.write("error: \(refusal.text)")
                throw ExitCode.failure
            }
        }

        /// Reads what an answer has.
        func content<Content: Decodable>(_ answer: HTTPExchange.Answer) throws -> Content {
            do {
                return try JSONDecoder().decode(Content.self, from: Data(answer.body))
            } catch {
                throw Failure(
                    .unavailable,
                    "the answer is not what APNs says of channels: check apns.channelEndpoints")
            }
        }
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Makes a channel, and prints its ID.",
            discussion: "How to bind it to a subject is printed to standard error.")

        @OptionGroup var scope: Scope

        @Option(
            help: """
                latest: APNs stores the latest broadcast for devices that are out of reach; none: it \
                stores nothing, and broadcasts must have the expiration immediate. It is fixed for the \
                channel's life.
                """)
        var storage = Storage.none

        enum Storage: String, ExpressibleByArgument, CaseIterable {
            case none, latest
        }

        func run() async throws {
            let answer = try scope.perform(.create(storesLatest: storage == .latest))
            guard let channel = answer.header.flatMap({ ChannelID(base64: $0) }) else {
                throw Failure(
                    .unavailable,
                    "the answer names no channel: check apns.channelEndpoints, and see what has been "
                        + "made with lamplighter channels list")
            }
            print(channel.base64)
            // Each channel gets a handler of its own: a registration replaces what its key had.
            let handler = Hexadecimal.encode(channel.bytes).prefix(RecordLimits.keyPartBytesMax)
            StandardError.write(
                "note: this binds it to a subject: lamplighter register --environment "
                    + "\(scope.environment) --app \(scope.app) --installation channels --handler "
                    + "\(handler) --class channel --token '\(channel.base64)' --subject SUBJECT")
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the IDs of the app's channels, a line each.")

        @OptionGroup var scope: Scope

        private struct Content: Decodable {
            var channels: [String]
        }

        func run() async throws {
            let content: Content = try scope.content(try scope.perform(.list))
            for channel in content.channels { print(channel.printable) }
        }
    }

    struct Read: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints what a channel stores: latest or none.")

        @OptionGroup var scope: Scope

        @Option(help: "The channel's ID, as create and list print it.")
        var channel: String

        private struct Content: Decodable {
            var policy: Int

            enum CodingKeys: String, CodingKey { case policy = "message-storage-policy" }
        }

        func run() async throws {
            let content: Content = try scope.content(
                try scope.perform(.read(Arguments.channelID(channel))))
            switch content.policy {
            case 0: print(Create.Storage.none.rawValue)
            case 1: print(Create.Storage.latest.rawValue)
            default: print("message-storage-policy \(content.policy)")
            }
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deletes a channel for good.",
            discussion: """
                Its registration stays until lamplighter register --remove takes it away; until then \
                the next broadcast is refused, and the channel is suppressed.
                """)

        @OptionGroup var scope: Scope

        @Option(help: "The channel's ID, as create and list print it.")
        var channel: String

        func run() async throws {
            let channel = try Arguments.channelID(channel)
            _ = try scope.perform(.delete(channel))
            print("deleted \(channel.base64)")
        }
    }
}
