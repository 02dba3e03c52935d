// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import ArgumentParser
import Demo
import EmbeddedKafka
import KafkaLog
import Worker

/// What a command that cannot go on tells its caller: one line, and a code from sysexits(3).
struct Failure: Error {
    enum Status: Int32 {
        case unavailable = 69
        case internalError = 70
        case temporary = 75
        case configuration = 78
    }

    var status: Status
    var message: String

    init(_ status: Status, _ message: String) {
        self.status = status
        self.message = message
    }

    /// Sorts any error of ours by what its reader can do about it.
    init(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let error as KafkaError: self.init(kafka: error)
        case let error as TopicEditor.Failure: self.init(.unavailable, "\(error)")
        case let error as InvalidConfiguration: self.init(.configuration, "\(error)")
        case let error as SigningKeyError: self.init(.configuration, "\(error)")
        // A taken port, a file that cannot be written: what the caller asked for cannot be had.
        case let error as SimulatorError: self.init(.configuration, "\(error)")
        case EmbeddedKafka.ProcessError.unwritable: self.init(.configuration, "\(error)")
        case let error as UnusablePath: self.init(.configuration, "\(error)")
        case WorkerFailure.kafka(let error): self.init(kafka: error)
        case WorkerFailure.addressSpace: self.init(.configuration, "\(error)")
        case let error as WorkerFailure: self.init(.temporary, "\(error)")
        default: self.init(.internalError, "\(error)")
        }
    }

    private init(kafka error: KafkaError) {
        switch error {
        case .noToken(let failure):
            self.init(failure.kind == .refused ? .configuration : .unavailable, "\(error)")
        case .noConnection(let failure):
            self.init(failure.isConfiguration ? .configuration : .unavailable, "\(error)")
        case .unreachable, .client: self.init(.unavailable, "\(error)")
        case .forbidden, .unknownProperty, .invalidProperty, .refusedProperty, .missingProperty,
            .refusedTogether, .missingTopic, .unsupported, .topicExists:
            self.init(.configuration, "\(error)")
        }
    }

    /// Runs a command's body; prints what went wrong and turns it into the exit code.
    static func reporting(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let code as ExitCode {
            throw code
        } catch let usage as ValidationError {
            throw usage
        } catch {
            let failure = Failure(error)
            StandardError.write("lamplighter: \(failure.message)")
            throw ExitCode(failure.status.rawValue)
        }
    }
}
