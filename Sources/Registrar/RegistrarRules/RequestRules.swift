// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// What a request's head may say about its body and its query. What is not understood is refused
/// rather than passed over: a body in another encoding would be read as something else, and a
/// parameter with a typing error would remove more than was meant.
package enum RequestRules {
    /// The parameter of a DELETE: removes only what has a lower sequence.
    package static let belowSequence = "belowSequence"
    /// The parameter of a GET of several handlers: shows those that follow this one.
    package static let after = "after"

    // MARK: The query

    package static func check(
        queryNames: some Sequence<String>, method: String, _ route: RegistrarRoute
    ) throws(Problem) {
        let known: String? =
            switch (method, route) {
            case ("DELETE", .installation), ("DELETE", .all), ("DELETE", .handler): belowSequence
            case ("GET", .installation), ("GET", .all): after
            default: nil
            }
        guard queryNames.allSatisfy({ $0 == known }) else {
            throw Problem(
                .invalid, "the query has a parameter that this request does not have",
                remedy: known.map { "use none but \($0)" } ?? "send the request without a query",
                field: "query")
        }
    }

    /// The value of `after`.
    package static func place(_ text: String) throws(Problem) -> String {
        guard InstallationKey.isName(text) else {
            throw Problem(
                .invalid, "\(after) is not where a page has ended",
                remedy: "send next of the page before, or leave it out", field: after)
        }
        return text
    }

    /// The value of `belowSequence`.
    package static func sequence(_ text: String) throws(Problem) -> Int64 {
        let isNumber = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isNumber, let sequence = Int64(text), sequence <= RegistrationArbiter.sequenceMax
        else {
            throw Problem(
                .invalid, "\(belowSequence) is not an integer from 0 to 2^53 - 1",
                remedy: "send a sequence, or leave it out", field: belowSequence)
        }
        return sequence
    }

    // MARK: The body

    /// - Parameters:
    ///   - contentType: the values of the header, one for each time that it is there.
    ///   - hasBody: a request without a body, as that for a challenge, needs no type.
    package static func check(contentType: [String], hasBody: Bool) throws(Problem) {
        if contentType.isEmpty, !hasBody { return }
        let parts = (contentType.first ?? "").split(
            separator: ";", omittingEmptySubsequences: false
        )
        .map { trimmed($0).lowercased() }
        guard contentType.count == 1, parts[0] == "application/json" else {
            throw Problem(
                .unsupportedMediaType, "the content type is not application/json",
                remedy: "send JSON with Content-Type: application/json")
        }
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair[0] == "charset" else { continue }
            let name = pair.count == 2 ? pair[1].drop { $0 == "\"" } : ""
            guard name == "utf-8" || name == "utf-8\"" else {
                throw Problem(
                    .unsupportedMediaType, "the charset is not utf-8",
                    remedy: "send UTF-8; the charset can be left out")
            }
        }
    }

    /// - Parameter contentEncoding: the values of the header.
    package static func check(contentEncoding: [String]) throws(Problem) {
        let codings = contentEncoding.flatMap { $0.split(separator: ",") }
            .map { trimmed($0).lowercased() }
        guard codings.allSatisfy({ $0 == "identity" || $0.isEmpty }) else {
            throw Problem(
                .unsupportedMediaType, "the body has a content encoding",
                remedy: "send the body as it is, without Content-Encoding")
        }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        var rest = text.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return rest
    }
}
