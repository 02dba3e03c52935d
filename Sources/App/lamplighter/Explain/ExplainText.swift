// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import PushModel
import Worker

/// Writes what `lamplighter explain` prints: plain sentences, each with what to do.
enum ExplainText {
    /// - Parameters:
    ///   - registrations: those in Kafka; nil if they were not read.
    ///   - wasKafkaAsked: whether they were asked for, so that it need not be advised.
    static func lines(
        asking wanted: RegistrationSearch.Wanted, answers: [(worker: String, reply: TokenReply)],
        registrations: [FoundRegistration]?, wasKafkaAsked: Bool
    ) -> [String] {
        var tokens = ExplainedTokens(answers)
        if let registrations { tokens.name(by: registrations) }
        var lines = notes(answers)
        let more = answers.first?.reply.more ?? 0
        let count = tokens.tokens.count
        lines.append(
            "\(wanted.name): \(count) \(count == 1 ? "token" : "tokens")"
                + (more == 0 ? "" : ", and \(more) more entries that are not shown") + ".")
        if tokens.tokens.isEmpty { lines += nobody(wanted, wasKafkaAsked: wasKafkaAsked) }
        // Every worker follows the same ones.
        lines += (answers.first?.reply.restrictions ?? []).map(\.sentence)
        for token in tokens.tokens { lines += [""] + TokenText(token).lines }
        for registration in registrations ?? [] {
            lines += text(registration, known: Set(tokens.tokens.map(\.first.tokenID)))
        }
        return lines
    }

    /// Of an app that no credential of the configuration serves: Kafka alone can have something.
    ///
    /// - Parameter registrations: those in Kafka that match; not empty.
    static func lines(
        ofStranger app: String, _ configuration: Configuration,
        asking wanted: RegistrationSearch.Wanted, registrations: [FoundRegistration]
    ) -> [String] {
        let count = registrations.count
        return [
            configuration.strangerText(app).withFullStop,
            "\(wanted.name): \(count) \(count == 1 ? "registration" : "registrations") of that app in "
                + "Kafka. Its tokens get pushes once a credential names the app, and the workers "
                + "have been restarted.",
        ] + registrations.flatMap { text($0, known: []) }
    }

    /// What may make the answers incomplete.
    private static func notes(_ answers: [(worker: String, reply: TokenReply)]) -> [String] {
        answers.flatMap { worker, reply in
            let isReplaying = reply.phase == "\(WorkerControl.Phase.replaying)"
            return
                (isReplaying
                ? [
                    "\(worker) still reads registrations, so tokens may be missing: ask again when "
                        + "its /readyz says ok."
                ] : [])
                + reply.gaps.map { gap in
                    switch gap {
                    case "manyHandlers":
                        "\(worker) does not remember every handler of the app: name it with "
                            + "--handler, or find it with --config."
                    default: "\(worker) says \(gap)."
                    }
                }
        }
    }

    /// What is missing where the workers have answered and Kafka has not.
    static func unread(because cause: String) -> String {
        "The registrations in Kafka could not be read, so that names of installations and handlers, "
            + "targets without a token, and registrations that no worker can read may be missing: "
            + cause.withFullStop
    }

    private static func nobody(
        _ wanted: RegistrationSearch.Wanted, wasKafkaAsked: Bool
    ) -> [String] {
        let compare = "Names are case-sensitive: compare with what the app registers."
        let text =
            switch wanted {
            case .subject: "No event reaches anybody by that name. \(compare)"
            case .installation: "The workers know no registration of that installation. \(compare)"
            case .token:
                "The workers know no token with that ID: no registration has it, and none of its "
                    + "pushes is remembered. An ID is the first 16 digits of the SHA-256 of the "
                    + "token's bytes, not of its hexadecimal text."
            }
        return [text]
            + (wasKafkaAsked
                ? []
                : [
                    "With --config the registrations in Kafka are looked through too, among them "
                        + "those that no worker can read."
                ])
    }

    /// What the workers do not know of a registration; no lines if there is nothing.
    private static func text(_ registration: FoundRegistration, known: Set<String>) -> [String] {
        var sentences: [String] = []
        if let problem = registration.problem {
            sentences.append("No worker can read it: \(problem.withFullStop)")
        }
        // A token that cannot be read is not a missing one.
        for target in registration.problem == nil ? registration.targets : [] {
            let kind = target.kinds.isEmpty ? "" : " of kind \(target.kinds.listed())"
            guard let id = target.tokenID else {
                sentences.append(
                    "Its \(target.class)\(kind) has no token yet, so nothing can be sent to it. The "
                        + "app must register the token once the system has given it one.")
                continue
            }
            if !known.contains(id) {
                sentences.append(
                    "The workers do not know token \(id) of its \(target.class)\(kind). If that "
                        + "lasts, see how far behind their index is (lamplighter status).")
            }
        }
        guard !sentences.isEmpty else { return [] }
        let name =
            "\(registration.environment)/\(registration.app)/\(registration.installation)/"
            + registration.handler
        return [
            "", "Registration \(name), written \(registration.writtenAt.minuteInUTC):",
        ] + sentences.map { "  \($0)" }
    }
}

extension RegistrationSearch.Wanted {
    /// The beginning of a sentence, such as `Subject door-42`.
    fileprivate var name: String {
        switch self {
        case .subject(let subject): "Subject \(subject)"
        case .installation(let installation): "Installation \(installation)"
        case .token(let id): "Token ID \(id)"
        }
    }
}
