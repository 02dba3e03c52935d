// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import Pipeline
internal import PushModel
internal import RecordFormats

@testable import Worker

/// The query of `GET /explain`, as the listener has decoded it. The input: lines `name=value`.
enum ExplainQueriesTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        var query: [String: String] = [:]
        for line in String(decoding: input, as: UTF8.self).split(separator: "\n") {
            let name = line.prefix { $0 != "=" }
            query[String(name)] = String(line.dropFirst(name.count + 1))
        }
        let question: TokenQuestion
        do throws(RefusedQuestion) {
            question = try TokenQuestion(query: query)
        } catch { return try promiseRefusal(error) }
        switch question {
        case .subject(let bytes, _):
            try promise(RecordLimits.subjectBytes.contains(bytes.count), "a subject of any size")
        case .installation(let installation, _, _, let handler):
            for part in [installation, handler].compactMap(\.self) {
                try promise(RecordKey.isPart(part), "a key that no record has")
            }
        case .token(let number):
            let asked = query["tokenID"]?.lowercased()
            try promise(ExplainJSON.tokenID(number) == asked, "a token that nobody asked about")
        }
    }
}

/// The body of `POST /explain`. What is read is written and read again.
enum ExplainBodiesTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        let question: EventQuestion
        do throws(RefusedQuestion) {
            question = try EventQuestion(body: Array(input))
        } catch { return try promiseRefusal(error) }
        let again: EventQuestion
        do throws(RefusedQuestion) {
            again = try EventQuestion(body: question.body)
        } catch { throw BrokenPromise(description: "what is asked is refused: \(error.remedy)") }
        try promise(again.topic == question.topic, "another topic")
        try promise(again.key == question.key && again.value == question.value, "another record")
        try promise(again.time == question.time, "another time")
        let isSame = again.headers.elementsEqual(question.headers) { $0 == $1 }
        try promise(isSame, "other headers")
    }
}

/// The body of `PUT /log-level`.
enum LogLevelsTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        guard let level = LogLevelRequest.level(in: Array(input)) else { return }
        let answer = LogLevelRequest.answer(level)
        try promise(LogLevelRequest.level(in: answer.body) == level, "an answer of another level")
    }
}

/// Why a question is refused is an answer of one line.
private func promiseRefusal(_ error: RefusedQuestion) throws {
    try promise((400..<600).contains(error.status), "a refusal with status \(error.status)")
    try promiseLine(error.remedy)
}
