// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Pipeline
internal import PushModel

extension PipelineFixture {
    /// Stands in for SHA-256, which the pipeline is given.
    static func tokenID(_ token: UnsafeRawBufferPointer) -> UInt64 {
        StableHash.hash64(token, seed: 1)
    }

    static func tokenID(of token: [UInt8]) -> UInt64 { token.withUnsafeBytes { tokenID($0) } }

    /// - Parameter meanwhile: is called between the parts of the answer.
    func explain(
        _ question: TokenQuestion, meanwhile: (_ part: Int) -> Void = { _ in }
    ) -> TokenExplanation {
        var inquiry = TokenInquiry(question, pipeline)
        var part = 0
        while !inquiry.advance(pipeline, now: now, tokenID: Self.tokenID) {
            part += 1
            meanwhile(part)
        }
        return inquiry.explanation
    }

    func explain(subject: String, app: String? = nil) -> [ExplainedToken] {
        explain(.subject(Array(subject.utf8), app: app)).tokens
    }

    func explain(installation: String) -> [ExplainedToken] {
        explain(
            .installation(installation, app: nil, environment: nil, handler: nil)
        ).tokens
    }

    func explain(token: [UInt8]) -> [ExplainedToken] {
        explain(.token(Self.tokenID(of: token))).tokens
    }

    /// Tries a record.
    func trial(
        _ key: String?, _ value: String? = nil, headers: [(name: String, value: [UInt8])] = [],
        binding: Int = 0
    ) -> EventExplanation {
        let record = TrialRecord(
            binding: binding, key: key.map { Array($0.utf8) }, value: value.map { Array($0.utf8) },
            timestamp: now.wall, headers: headers)
        var inquiry = EventInquiry(record)
        while !inquiry.advance(pipeline, now: now, tokenID: Self.tokenID) {}
        return inquiry.explanation
    }
}

extension ExplainedToken {
    var states: [ExplainedPush.State] { pushes.map(\.state) }
    var subjects: [String] {
        places.shows.map { String(decoding: $0.subject ?? [], as: UTF8.self) }.sorted()
    }
}
