// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Configuration
internal import Delivery
internal import Logging
internal import PushModel

/// The result of trying a signing key with APNs.
struct KeyTrial: Sendable {
    var result: KeyRotation.Result
    /// Why the key was not accepted, for the log.
    var reason = ""
}

/// Reads the key files every few seconds and performs what `KeyRotation` decides: a new key is
/// tried by one push to a device token that does not exist, and is used once APNs accepts its
/// provider token. A provider token that another service renews is a new key each time.
struct KeyFollower {
    typealias Try =
        @Sendable (
            _ credential: String, _ environment: PushEnvironment, _ key: SigningKey
        ) async -> KeyTrial

    private struct Followed {
        let credential: SigningKeys.Credential
        /// The rotation of each environment. It names keys by their numbers.
        var rotations: [PushEnvironment: KeyRotation] = [:]
        /// The usable keys among those of `numbers`.
        var keys: [Int: SigningKey] = [:]
        var numbers: [KeySource.KeyText: Int] = [:]
        var nextNumber = 0
        var problems: [String] = []
        var isGoneTold = false
        /// Where APNs has refused the token in use, which another service has made.
        var refusals: Set<PushEnvironment> = []
        /// The token of which the log has said why it is not used.
        var keptBack: [PushEnvironment: Int] = [:]

        /// Numbers a text, unless it has a number.
        mutating func number(_ text: KeySource.KeyText) -> Bool {
            guard numbers[text] == nil else { return false }
            numbers[text] = nextNumber
            nextNumber += 1
            return true
        }

        /// Forgets the keys that are neither there nor known to a rotation. Tokens are replaced all
        /// the time.
        mutating func forget(allBut texts: [KeySource.KeyText]) {
            let there = Set(texts.compactMap { numbers[$0] })
            let known = rotations.values.reduce(there) { $0.union($1.keys) }
            numbers = numbers.filter { known.contains($0.value) }
            keys = keys.filter { known.contains($0.key) }
            assert(
                rotations.values.allSatisfy { keys[$0.keyInUse] != nil },
                "the key that is in use in an environment is never forgotten")
        }
    }

    private var followed: [String: Followed] = [:]
    private let logger: Logger
    private let attempt: Try
    private let changed: @Sendable (_ credential: String, _ environment: PushEnvironment) -> Void

    /// - Parameter changed: is called when another key is used in an environment.
    init(
        _ keys: SigningKeys, logger: Logger, attempt: @escaping Try,
        changed: @escaping @Sendable (String, PushEnvironment) -> Void
    ) {
        self.logger = logger
        self.attempt = attempt
        self.changed = changed
        for (name, credential) in keys.credentials {
            var one = Followed(credential: credential)
            for text in credential.found { _ = one.number(text) }
            one.keys[0] = credential.key
            let others = one.numbers.filter { $0.value != 0 }
            let rotation = KeyRotation(
                keyInUse: 0,
                spares: others.filter { !credential.newer.contains($0.key) }.map(\.value),
                candidates: others.filter { credential.newer.contains($0.key) }.map(\.value))
            for environment in credential.tokens.keys { one.rotations[environment] = rotation }
            followed[name] = one
        }
        for name in followed.keys { makeKeys(name) }
    }

    /// Follows the key files until the task is cancelled.
    mutating func run(every interval: Duration, clock: @Sendable () -> Now) async {
        repeat {
            await lookAtAll(clock)
        } while (try? await Task.sleep(for: interval)) != nil
    }

    // MARK: Files

    /// Looks at the files of all credentials once.
    mutating func lookAtAll(_ clock: @Sendable () -> Now) async {
        for name in followed.keys.sorted() { await look(at: name, clock) }
    }

    private mutating func look(at name: String, _ clock: @Sendable () -> Now) async {
        let look = followed[name]!.credential.source.look()
        for problem in look.problems where !followed[name]!.problems.contains(problem) {
            logger.error(
                "a signing key is unusable",
                metadata: ["credential": "\(name)", "cause": "\(problem)"])
        }
        followed[name]!.problems = look.problems
        for text in look.keys where followed[name]!.number(text) { makeKeys(name) }
        let found = look.keys.compactMap { followed[name]!.numbers[$0] }
            .filter { followed[name]!.keys[$0] != nil }
        for environment in PushEnvironment.allCases {
            guard followed[name]!.rotations[environment] != nil else { continue }
            await rotate(name, environment, Set(found), clock)
        }
        followed[name]!.forget(allBut: look.keys)
        tellOfGone(name)
    }

    /// Makes keys from texts that have none yet.
    private mutating func makeKeys(_ name: String) {
        for (text, number) in followed[name]!.numbers where followed[name]!.keys[number] == nil {
            do {
                followed[name]!.keys[number] = try text.key(team: followed[name]!.credential.team)
            } catch {
                logger.error(
                    "a signing key is unusable",
                    metadata: [
                        "credential": "\(name)", "keyID": "\(text.keyID)", "cause": "\(error)",
                    ])
            }
        }
    }

    private mutating func tellOfGone(_ name: String) {
        for (environment, rotation) in followed[name]!.rotations {
            followed[name]!.credential.tokens[environment]?.noteGone(rotation.isGone)
        }
        let isGone = followed[name]!.rotations.values.contains(where: \.isGone)
        if isGone, !followed[name]!.isGoneTold {
            logger.warning(
                "key file removed; keeping the loaded key until a new one is accepted",
                metadata: ["credential": "\(name)"])
        }
        followed[name]!.isGoneTold = isGone
    }

    // MARK: Trials

    private mutating func rotate(
        _ name: String, _ environment: PushEnvironment, _ found: Set<Int>,
        _ clock: @Sendable () -> Now
    ) async {
        let tokens = followed[name]!.credential.tokens[environment]!
        let isRefused = tokens.takeRefusal()
        if isRefused { followed[name]!.refusals.insert(environment) }
        let usable = usable(found, name, environment, now: clock().wall)
        var rotation = followed[name]!.rotations[environment]!
        defer { followed[name]!.rotations[environment] = rotation }
        let new = rotation.found(usable, now: clock().monotonic)
        for number in new { tell("found a new signing key", name, environment, number) }
        if isRefused { rotation.refusedInUse(now: clock().monotonic) }
        while !Task.isCancelled, let number = rotation.nextTrial(now: clock().monotonic) {
            guard let key = followed[name]!.keys[number] else {
                // The key is unusable, which has been reported.
                _ = rotation.tried(number, .refused, now: clock().monotonic)
                continue
            }
            let trial = await attempt(name, environment, key)
            guard !Task.isCancelled else { return }
            let again = rotation.tried(number, trial.result, now: clock().monotonic)
            if trial.result == .accepted {
                let before = tokens.keyInUse.keyID
                tokens.use(key)
                followed[name]!.refusals.remove(environment)
                changed(name, environment)
                tell(
                    "APNs accepts another signing key, which is used from now on", name,
                    environment, number, ["replaces": "\(before)"])
            } else if let again {
                let wait = (again - clock().monotonic).components.seconds
                tellOfFailure(trial, name, environment, key, wait: wait)
            }
        }
    }

    /// Of keys, those that were found. Of a file with the token of another service: the one in use as
    /// long as any is there, since the other is to replace it; and the other once it may.
    private mutating func usable(
        _ found: Set<Int>, _ name: String, _ environment: PushEnvironment, now: WallTime
    ) -> Set<Int> {
        let one = followed[name]!
        let numberInUse = one.rotations[environment]!.keyInUse
        guard let inUse = one.keys[numberInUse]?.ready, !found.isEmpty else { return found }
        var usable: Set = [numberInUse]
        for number in found where number != numberInUse {
            guard let other = one.keys[number]?.ready else { continue }
            let replacement = ReadyTokenAge.replacement(
                ages: (now - inUse.issuedAt, now - other.issuedAt),
                isRefused: one.refusals.contains(environment))
            if replacement == .now {
                usable.insert(number)
            } else if followed[name]!.keptBack.updateValue(number, forKey: environment) != number {
                tell(of: replacement, name, environment, one.keys[number]!)
            }
        }
        return usable
    }

    private func tell(
        of replacement: ReadyTokenAge.Replacement, _ name: String, _ environment: PushEnvironment,
        _ key: SigningKey
    ) {
        let metadata = metadata(name, environment, key)
        switch replacement {
        case .now: break
        case .tooSoon:
            logger.notice(
                "the provider token was renewed within 20 minutes: the new one waits",
                metadata: metadata)
        case .notNewer:
            logger.warning(
                "the provider token in the file is not newer than the one in use, which stays",
                metadata: metadata)
        case .over:
            logger.error(
                "the provider token in the file is too old for APNs", metadata: metadata)
        }
    }

    /// A token of the same key is nothing new to an operator: it comes every 45 minutes or so.
    private func tell(
        _ message: Logger.Message, _ name: String, _ environment: PushEnvironment, _ number: Int,
        _ more: Logger.Metadata = [:]
    ) {
        let key = followed[name]!.keys[number]!
        logger.log(
            level: key.ready == nil ? .notice : .info, message,
            metadata: metadata(name, environment, key).merging(more) { $1 })
    }

    private func tellOfFailure(
        _ trial: KeyTrial, _ name: String, _ environment: PushEnvironment, _ key: SigningKey,
        wait: Int64
    ) {
        var metadata = metadata(name, environment, key)
        metadata["nextTrialSeconds"] = .stringConvertible(wait)
        metadata["reason"] = "\(trial.reason)"
        metadata["inUse"] = "\(followed[name]!.credential.tokens[environment]!.keyInUse.keyID)"
        if trial.result == .refused {
            metadata["remedy"] = "\(Self.remedy)"
            logger.error(
                "APNs refuses another signing key; the one in use stays", metadata: metadata)
        } else {
            logger.warning(
                "another signing key could not be tried; the one in use stays", metadata: metadata)
        }
    }

    private static let remedy =
        "check that it is this team's key, for this environment, under the key ID that Apple gave it: "
        + "a new key never has an old key's ID"

    private func metadata(
        _ name: String, _ environment: PushEnvironment, _ key: SigningKey
    ) -> Logger.Metadata {
        [
            "credential": "\(name)", "environment": "\(environment.name)",
            "keyID": "\(key.keyID)",
        ]
    }
}

extension SinglePush {
    /// Tries a key with APNs, by a push to a device token that does not exist. Blocks until the
    /// answer.
    static func trial(
        of key: SigningKey, credential: String, environment: PushEnvironment,
        configuration: Configuration, plan: WorkerPlan, keys: SigningKeys, logger: Logger
    ) -> KeyTrial {
        let route = plan.routing.routes.firstIndex { route in
            let pool = plan.routing.pools[Int(route.pool.rawValue)]
            return pool.credential == credential && pool.environment == environment
                && route.tokenClass == .control
        }
        guard let route else {
            return KeyTrial(result: .unanswered, reason: "the credential signs for no app")
        }
        var push = SinglePush(
            plan, route: RouteID(rawValue: UInt16(route)), type: .controls,
            token: Array(repeating: 0, count: 32), now: PlannerLoop.clock().wall)
        push.tokens = ProviderTokens(key)
        let answer: Answer?
        do {
            answer = try push.send(
                configuration: configuration, plan: plan, keys: keys, timeout: .seconds(15),
                logger: logger)
        } catch {
            return KeyTrial(result: .unanswered, reason: "\(error)")
        }
        guard let answer, answer.outcome.kind == .answered else {
            return KeyTrial(result: .unanswered, reason: "APNs did not answer")
        }
        let status = answer.outcome.status
        let row = AnswerTable.row(status: status, reason: answer.outcome.reason)
        let reason = "\(status) \(answer.reason)"
        if status >= 500 { return KeyTrial(result: .unanswered, reason: reason) }
        if status == 403 || row.push == .openPoolBreaker {
            return KeyTrial(result: .refused, reason: reason)
        }
        return KeyTrial(result: .accepted)
    }
}
