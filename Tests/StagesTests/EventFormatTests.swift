// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Event format` {
    @Test func `an event that the encoder writes is read by the decoder`() throws {
        var draft = EventDraft()
        draft.subject = "a\u{1}\"\\é"
        draft.app = "com.example.Home"
        draft.environment = .development
        draft.kinds = ["k"]
        draft.classes = [.control, .device]
        draft.ttlSeconds = 60
        draft.priority = 5
        draft.collapseID = "c"
        draft.expiration = ExpirationRule.none
        draft.payload = Array(#"{"aps":{"badge":1}}"#.utf8)
        let event = try decodeEvent(EventEncoder.value(draft))
        #expect(event.subject == draft.subject)
        #expect(event.environment == .development)
        #expect(event.kinds == ["k"])
        #expect(event.classes == [TokenClassSet(.control), TokenClassSet(.device)])
        #expect(event.life == .seconds(60))
        #expect(event.priority == 5)
        #expect(event.collapseID == "c")
        #expect(event.expiration == ExpirationRule.none)
        #expect(event.payload == #"{"aps":{"badge":1}}"#)
        #expect(EventEncoder.value(EventDraft()) == Array(#"{"v":1}"#.utf8))
    }
}
