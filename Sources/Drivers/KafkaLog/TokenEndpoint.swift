// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import FoundationEssentials
internal import PushModel
internal import Rdkafka

/// Requests tokens from an OAuth 2.0 token endpoint and checks its answers.
struct TokenEndpoint: Sendable {
    let settings: OIDCSettings
    /// The endpoint's URL for messages, without the query, which may hold a key.
    let shown: String

    /// The longest lifetime taken from a token; a longer-lived one is renewed as if it had this.
    private static let lifeMax: Int64 = 7 * 86_400_000

    private let timeout: Duration

    /// - Parameter timeout: the time limit of one request, name look-up and connect included.
    init(_ settings: OIDCSettings, timeout: Duration = .seconds(10)) {
        self.settings = settings
        self.timeout = timeout
        var url = URLComponents(string: settings.endpoint)
        url?.query = nil
        shown = url?.string ?? ""
    }

    /// Requests a token. Blocks for at most the timeout and a second.
    /// - Parameter now: the clock, in milliseconds since 1970.
    func token(now: () -> Int64) throws(TokenFailure) -> BearerToken {
        let answer: HTTPExchange.Answer
        do throws(ExchangeFailure) {
            answer = try exchange.perform()
        } catch {
            throw TokenFailure(error, endpoint: shown)
        }
        let content = TokenAnswer(answer.body)
        guard answer.status == 200 else { throw refusal(answer.status, content?.error) }
        return try token(in: content, now: now())
    }

    /// The HTTP request, as RFC 6749, sections 2.3.1 and 4.4.2, describes it.
    private var exchange: HTTPExchange {
        var exchange = HTTPExchange(url: settings.endpoint)
        exchange.headers = [
            ("accept", "application/json"),
            ("content-type", "application/x-www-form-urlencoded"),
        ]
        exchange.credentials = (
            Self.formEncoded(settings.clientID), Self.formEncoded(settings.clientSecret.text)
        )
        var form = "grant_type=client_credentials"
        if let scope = settings.scope { form += "&scope=\(Self.formEncoded(scope))" }
        exchange.body = Array(form.utf8)
        exchange.caFile = settings.caFile
        exchange.timeout = timeout
        return exchange
    }

    static func formEncoded(_ text: String) -> String {
        let hexadecimal = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2A, 0x2D, 0x2E, 0x5F:
                bytes.append(byte)
            case 0x20: bytes.append(0x2B)
            default:
                bytes += [0x25, hexadecimal[Int(byte >> 4)], hexadecimal[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: The answer

    private func refusal(_ status: UInt16, _ code: String?) -> TokenFailure {
        let wrong = "answers \(status)" + (code.map { " \($0)" } ?? "")
        return switch status {
        case 400 where code == "invalid_scope":
            TokenFailure(
                .refused, shown, wrong, remedy: "check \(OIDCSettings.Property.scope.rawValue)")
        case 400, 401, 403:
            TokenFailure(
                .refused, shown, wrong,
                remedy: "check \(OIDCSettings.Property.clientID.rawValue) and its secret, and that "
                    + "the client may use the grant client_credentials")
        case 429:
            TokenFailure(
                .unusable, shown, wrong, remedy: "have it allow a request a minute from here")
        case 300..<500:
            TokenFailure(
                .refused, shown, wrong,
                remedy: "check \(OIDCSettings.Property.endpoint.rawValue)")
        default:
            TokenFailure(.unusable, shown, wrong, remedy: "see what is wrong with it")
        }
    }

    func token(
        in answer: TokenAnswer?, now: Int64
    ) throws(TokenFailure) -> BearerToken {
        guard let answer else { throw unusable("answers with something other than a JSON object") }
        guard let value = answer.accessToken else {
            throw unusable("answers without a usable access_token")
        }
        guard let claims = TokenClaims(of: value) else {
            throw unusable("answers with a token that is not a JSON Web Token with a subject (sub)")
        }
        // The token's own expiry takes precedence, because brokers check that one.
        guard let expiresAt = claims.expiresAt ?? answer.life.map({ now + $0 }) else {
            throw unusable("does not say when the token expires (exp or expires_in)")
        }
        guard expiresAt > now else {
            throw unusable(
                "answers with a token that has expired", remedy: "compare this machine's clock")
        }
        return BearerToken(
            value: value, principal: claims.subject,
            expiresAtMilliseconds: min(expiresAt, now + Self.lifeMax),
            extensions: settings.extensions)
    }

    private func unusable(
        _ wrong: String, remedy: String = "check \(OIDCSettings.Property.endpoint.rawValue)"
    ) -> TokenFailure {
        TokenFailure(.unusable, shown, wrong, remedy: remedy)
    }
}
