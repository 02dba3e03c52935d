// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Rdkafka
internal import Testing

@testable internal import Worker

@Suite struct `What Kafka says of a record` {
    @Test func `no error is an acknowledgement`() {
        #expect(RecordAnswer(nil) == .acknowledged && RecordAnswer(nil).cause == nil)
    }

    @Test func `a record that is too large is not refused, since it never will be taken`() {
        #expect(RecordAnswer(.messageTooLarge) == .tooLarge)
        #expect(RecordAnswer(.messageTooLarge).cause == nil, "its topic is not to blame")
    }

    @Test func `any other error is a refusal with its cause`() {
        for code in [ErrorCode.timedOut, .topicAuthorizationFailed, .fatal] {
            #expect(RecordAnswer(code) == .refused(cause: code.name))
            #expect(RecordAnswer(code).cause == code.name)
        }
    }
}
