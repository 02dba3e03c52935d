// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// What the registrar says is wrong (RFC 9457).
public struct Problem: Codable, Hashable, Sendable {
    /// A URI whose last part names the problem, such as `staleSequence`.
    public var type: String?
    public var title: String?
    public var status: Int?
    public var detail: String?
    /// What to do about it.
    public var remedy: String?
    /// Where in the body, as a JSON pointer.
    public var field: String?
    public var storedSequence: Int64?

    public init(status: Int, title: String? = nil) {
        self.status = status
        self.title = title
    }

    public var name: String? { type?.split(separator: "/").last.map(String.init) }
}

/// What an answer means for the snapshot that was sent.
enum Answer: Hashable, Sendable {
    case stored
    /// The registrar has `stored`, which is not less than what was sent.
    case stale(stored: Int64)
    /// 401: a new credential may help.
    case credentialRefused(CredentialRefusal)
    /// Another time; `after` in seconds, if the registrar says when.
    case later(after: TimeInterval?, Problem)
    /// The same request will always be refused.
    case refused(Problem)

    init(_ response: Response, now: Date) {
        var problem =
            (try? JSONDecoder().decode(Problem.self, from: response.body))
            ?? Problem(status: response.status)
        problem.status = response.status
        switch response.status {
        case 200..<300:
            self = .stored
        case 409 where problem.name == "staleSequence" && problem.storedSequence != nil:
            // Whatever stands before the registrar may answer anything.
            self = .stale(stored: min(max(0, problem.storedSequence!), Snapshot.sequenceMax))
        case 401:
            let date = response.headers["date"].flatMap(Self.date)
            self = .credentialRefused(CredentialRefusal(problem, date: date))
        // 408 and 425 come from proxies, and mean the same.
        case 408, 425, 429, 500...:
            self = .later(
                after: response.headers["retry-after"].flatMap { Self.seconds($0, now: now) },
                problem)
        default:
            self = .refused(problem)
        }
    }

    /// `Retry-After`: seconds, or an HTTP date (RFC 9110, 10.2.3).
    static func seconds(_ value: String, now: Date) -> TimeInterval? {
        let value = value.trimmingCharacters(in: .whitespaces)
        if let seconds = UInt32(value) { return TimeInterval(seconds) }
        return date(value).map { max(0, $0.timeIntervalSince(now)) }
    }

    /// An HTTP date (RFC 9110, 5.6.7).
    static func date(_ value: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.date(from: value)
    }
}
