// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import PushModel

/// Fetches the keys of tokens from a file or a URL, and decides when. Used by one thread.
struct TokenKeySource: ~Copyable {
    /// How soon keys are fetched again after a failure, or for a token with an unknown key: that
    /// may be anybody's, and must not make the registrar a burden for the issuer.
    static let pause = Duration.seconds(30)
    /// How soon a file is looked at again, like all others.
    static let filePause = Duration.seconds(5)

    private let settings: AccessSettings.JWT
    private let fetch: @Sendable () -> Result<[UInt8], FileFault>
    private var lastBytes: [UInt8]?
    private var triedAt: WallTime?
    private var hasFailed = false
    /// A token with an unknown key has come, and the keys have not been fetched since.
    private var isAskedFor = false

    init(
        _ settings: AccessSettings.JWT,
        fetch: (@Sendable () -> Result<[UInt8], FileFault>)? = nil
    ) {
        self.settings = settings
        self.fetch = fetch ?? { Self.fetch(settings) }
    }

    /// What one look has found.
    enum Look {
        case same
        case new(JSONWebKeySet)
        case fault(FileFault)
    }

    /// Fetches the keys if it is time.
    /// - Parameter unknownKeySeen: whether a token with an unknown key has come since the last call.
    /// - Returns: nil if it is not time.
    mutating func look(unknownKeySeen: Bool, now: WallTime) -> Look? {
        if unknownKeySeen { isAskedFor = true }
        guard isDue(now) else { return nil }
        triedAt = now
        isAskedFor = false
        do throws(FileFault) {
            let bytes = try fetch().get()
            let set = bytes == lastBytes ? nil : try JSONWebKeySet(bytes)
            hasFailed = false
            lastBytes = bytes
            return set.map { .new($0) } ?? .same
        } catch {
            hasFailed = true
            return .fault(error)
        }
    }

    private func isDue(_ now: WallTime) -> Bool {
        // A clock that was set back does not keep old keys.
        guard let triedAt, now >= triedAt else { return true }
        return now - triedAt >= min(pause, settings.refreshInterval)
    }

    private var pause: Duration {
        switch settings.keys {
        case .file: Self.filePause
        case .url: isAskedFor || hasFailed ? Self.pause : settings.refreshInterval
        }
    }

    private static func fetch(_ settings: AccessSettings.JWT) -> Result<[UInt8], FileFault> {
        switch settings.keys {
        case .file(let path):
            return Result { () throws(FileFault) in
                try AccessFile(path, bytesMax: JSONWebKeySet.bytesMax).read()
            }
        case .url(let url):
            var exchange = HTTPExchange(url: url)
            exchange.headers = [("accept", "application/jwk-set+json, application/json")]
            exchange.caFile = settings.caFile
            exchange.answerBytesMax = JSONWebKeySet.bytesMax
            do throws(ExchangeFailure) {
                let answer = try exchange.perform()
                guard answer.status == 200 else {
                    return .failure(FileFault("answers with status \(answer.status)"))
                }
                return .success(answer.body)
            } catch {
                return .failure(FileFault("cannot be fetched: \(error.text.printable)"))
            }
        }
    }
}
