// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import PushModel
internal import SchemaCodecs

/// Asks a schema registry, by the API that Confluent's, Karapace's and others have. A request blocks,
/// so it belongs to a thread of its own.
struct RegistryClient: ~Copyable {
    private let settings: RegistrySettings
    private let conversation = HTTPConversation()
    /// The instance that answered last, which is asked first: its place among the URLs.
    private(set) var preferred: Int

    private static let connectTimeMax = Duration.seconds(3)
    /// In less nothing is answered, and libcurl takes 0 ms for no limit.
    private static let requestTimeMin = Duration.milliseconds(10)

    /// What the registry's API calls a schema, a subject or a version that it does not have.
    private static let schemaNotFound: Int64 = 40403
    private static let notFound: [Int64] = [40401, 40402, 40403]

    init(_ settings: RegistrySettings, preferred: Int = 0) {
        self.settings = settings
        self.preferred = preferred
    }

    private enum Reply {
        case found(RegistryAnswer)
        /// The registry itself says so.
        case missing
        /// Another answer, or none within the time over a connection that came about.
        case failed(String, retryAfter: Duration = .zero, isForAll: Bool = false)
        /// There was no connection.
        case unreachable(String)
    }

    /// Fetches a schema with all that it refers to, and reads it.
    mutating func fetch(_ schema: SchemaID) -> SchemaBook.Outcome {
        let deadline = ContinuousClock.now + settings.schemaTimeMax
        switch ask("/schemas/ids/\(schema)", before: deadline, [Self.schemaNotFound]) {
        case .failed(let cause, let retryAfter, let isForAll):
            return .failed(cause, retryAfter: retryAfter, isForAll: isForAll)
        case .unreachable(let cause): return .unreachable(cause)
        case .missing:
            return .unknown("schema \(schema) is not in the registry")
        case .found(let answer):
            do throws(Interruption) {
                return try read(answer, schema, before: deadline)
            } catch {
                switch error {
                case .unusable(let reason): return .unusable("schema \(schema): \(reason)")
                case .failed(let outcome): return outcome
                }
            }
        }
    }

    private enum Interruption: Error {
        case unusable(String)
        case failed(SchemaBook.Outcome)
    }

    private mutating func read(
        _ answer: RegistryAnswer, _ schema: SchemaID, before deadline: ContinuousClock.Instant
    ) throws(Interruption) -> SchemaBook.Outcome {
        guard let language = SchemaLanguage(rawValue: answer.language) else {
            throw .unusable(
                "it is \(String(answer.language.prefix(40)).printable), "
                    + "and only AVRO, PROTOBUF and JSON are read")
        }
        var text = SchemaText(language: language, text: answer.text)
        // The values of JSON Schema are JSON whatever it says.
        if language != .json {
            var seen: Set<RegistryAnswer.Reference> = []
            var bytes = answer.text.count
            try collect(answer.references, into: &text, &seen, &bytes, depth: 1, before: deadline)
        }
        do throws(UnusableSchema) {
            return .schema(try RecordSchema(text))
        } catch { throw .unusable(error.description) }
    }

    private static let referenceDepthMax = 32

    /// Each schema comes after those that it refers to.
    private mutating func collect(
        _ references: [RegistryAnswer.Reference], into text: inout SchemaText,
        _ seen: inout Set<RegistryAnswer.Reference>, _ bytes: inout Int, depth: Int,
        before deadline: ContinuousClock.Instant
    ) throws(Interruption) {
        guard depth <= Self.referenceDepthMax else {
            throw .unusable("it refers to others that refer to others and so on, too often")
        }
        for reference in references {
            // Several schemas may refer to one by different names, which matter to Protobuf alone.
            var known = reference
            if text.language == .avro { known.name = "" }
            guard seen.insert(known).inserted else { continue }
            guard seen.count <= SchemaLimits.referencesMax else {
                throw .unusable("it refers to more than \(SchemaLimits.referencesMax) others")
            }
            let path =
                "/subjects/\(Self.escaped(reference.subject))/versions/\(reference.version)"
                + "?deleted=true"
            switch ask(path, before: deadline, Self.notFound) {
            case .failed(let cause, let retryAfter, let isForAll):
                throw .failed(.failed(cause, retryAfter: retryAfter, isForAll: isForAll))
            case .unreachable(let cause): throw .failed(.unreachable(cause))
            case .missing:
                throw .unusable(
                    "it refers to version \(reference.version) of "
                        + "\(String(reference.subject.prefix(200)).printable), which is not in the "
                        + "registry")
            case .found(let answer):
                bytes += answer.text.count
                guard bytes <= SchemaLimits.textsBytesMax else {
                    throw .unusable(
                        "with what it refers to it has more than \(SchemaLimits.textsBytesMax) bytes"
                    )
                }
                try collect(
                    answer.references, into: &text, &seen, &bytes, depth: depth + 1,
                    before: deadline)
                text.references.append((reference.name, answer.text))
            }
        }
    }

    /// Percent-encoded as part of a path.
    static func escaped(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                bytes.append(byte)
            // Dots as well: libcurl takes a segment `..` out of the path.
            default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: One request

    /// Asks the instances in turn. What one of them does not have is missing only if no other one has
    /// it: an instance may lag behind. The registry is reached if one of them is.
    private mutating func ask(
        _ path: String, before deadline: ContinuousClock.Instant, _ missing: [Int64]
    ) -> Reply {
        let first = preferred
        var cause: String?
        var wait = Duration.zero
        var (areMissing, isReached, isForAll) = (true, false, true)
        for turn in settings.urls.indices {
            let index = (first + turn) % settings.urls.count
            switch ask(settings.urls[index], path, before: deadline, missing) {
            case .found(let answer):
                preferred = index
                return .found(answer)
            case .missing: (isReached, isForAll) = (true, false)
            // This instance might have it.
            case .failed(let text, let retryAfter, let isItsWordForAll):
                (areMissing, isReached, isForAll) = (false, true, isForAll && isItsWordForAll)
                cause = cause ?? text
                wait = max(wait, retryAfter)
            case .unreachable(let text):
                areMissing = false
                cause = cause ?? text
            }
        }
        if areMissing { return .missing }
        return isReached
            ? .failed(cause!, retryAfter: wait, isForAll: isForAll) : .unreachable(cause!)
    }

    private func ask(
        _ url: String, _ path: String, before deadline: ContinuousClock.Instant, _ missing: [Int64]
    ) -> Reply {
        let timeLeft = ContinuousClock.now.duration(to: deadline)
        guard timeLeft >= Self.requestTimeMin else {
            return .failed("a schema with what it refers to has taken \(settings.schemaTimeMax)")
        }
        let base = url.hasSuffix("/") ? String(url.dropLast()) : url
        var exchange = HTTPExchange(url: base + path)
        exchange.headers = [
            ("accept", "application/vnd.schemaregistry.v1+json, application/json")
        ]
        if let user = settings.user {
            exchange.credentials = (user, settings.password?.text ?? "")
        }
        exchange.caFile = settings.caFile
        exchange.answerBytesMax = RegistryAnswer.bytesMax
        exchange.timeout = min(settings.requestTimeMax, timeLeft)
        exchange.connectTimeout = min(Self.connectTimeMax, exchange.timeout)
        do throws(ExchangeFailure) {
            return Self.reply(to: try conversation.perform(exchange), missing, from: base)
        } catch {
            let cause = "\(base): \(error.text.printable)"
            return error.kind.isBeforeRequest ? .unreachable(cause) : .failed(cause)
        }
    }

    /// Only the registry's own error says that it does not have something: a proxy, or another server
    /// at a wrong URL, answers 404 as well.
    private static func reply(
        to answer: HTTPExchange.Answer, _ missing: [Int64], from url: String
    ) -> Reply {
        if answer.status == 200 {
            if let read = RegistryAnswer(answer.body) { return .found(read) }
            return .failed("\(url) answers with no schema")
        }
        if answer.status == 404, let code = RegistryAnswer.errorCode(answer.body),
            missing.contains(code)
        {
            return .missing
        }
        let isForAll = answer.retryAfter > .zero && [429, 503].contains(answer.status)
        let words = RegistryAnswer.message(answer.body).map { ": \($0)" } ?? ""
        return .failed(
            "\(url) answers \(answer.status)\(words)", retryAfter: answer.retryAfter,
            isForAll: isForAll)
    }
}
