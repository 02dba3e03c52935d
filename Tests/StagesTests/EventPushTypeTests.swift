// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Events of every push type` {
    private static let start =
        #""timestamp":1795262400,"event":"start","content-state":{},"attributes-type":"A","attributes":{}"#

    @Test(arguments: [
        (#"{"payload":{"aps":{"alert":"x"}}}"#, "alert"),
        (#"{"payload":{"aps":{"content-available":1}}}"#, "background"),
        (
            #"{"payload":{"aps":{"timestamp":1795262400,"event":"update","content-state":{}}}}"#,
            "liveactivity"
        ),
        (
            #"{"payload":{"aps":{"timestamp":1795262400,"event":"end"}},"pushType":"liveactivity"}"#,
            "liveactivity"
        ),
        (
            #"{"payload":{"aps":{"timestamp":1795262400,"event":"end","content-state":null}}}"#,
            "liveactivity"
        ),
        (
            #"{"payload":{"aps":{"timestamp":1795262400,"event":"end","alert":"x"}}}"#,
            "liveactivity"
        ),
        (#"{"payload":{"aps":{"event":"end","alert":"x"}}}"#, "alert"),
        (#"{"payload":{"aps":{"timestamp":1,"event":"update","alert":"x"}}}"#, "alert"),
        (#"{"pushType":"background"}"#, "background"), (#"{"pushType":"location"}"#, "location"),
        (#"{"pushType":"voip","payload":{"a":1}}"#, "voip"),
        (#"{"pushType":"pushtotalk","payload":{}}"#, "pushtotalk"),
        (#"{"pushType":"complication","payload":{"aps":{}}}"#, "complication"),
        (#"{"pushType":"fileprovider","payload":{"domain":"d"}}"#, "fileprovider"),
    ])
    func `a payload's type is told or named`(event: String, type: String) throws {
        #expect(try decodeEvent(event).payloadType?.name == type)
    }

    @Test(arguments: ["controls", "widgets"])
    func `a type without a payload is for its class alone`(type: String) throws {
        let event = try decodeEvent(#"{"pushType":"\#(type)"}"#)
        #expect(event.payload == nil)
        #expect(event.classes == TokenClassSet(PushType(name: type)!.tokenClass))
    }

    @Test(arguments: [
        (#"{"pushType":"voip"}"#, UnreadableCode.invalidPayload),
        (#"{"pushType":"alert","payload":{"aps":{"content-available":1}}}"#, .invalidPayload),
        (
            #"{"pushType":"background","payload":{"aps":{"content-available":1,"sound":"s"}}}"#,
            .invalidPayload
        ),
        (#"{"pushType":"controls","payload":{"aps":{}}}"#, .invalidPayload),
        (#"{"payload":{"domain":"d"}}"#, .invalidPayload),
        (#"{"pushType":"mdm","payload":{}}"#, .invalidField),
        (#"{"payload":{"aps":{"event":"end"}}}"#, .invalidPayload),
        (#"{"payload":{"aps":{"content-state":{},"event":"update"}}}"#, .invalidPayload),
        (#"{"payload":{"aps":{"content-state":{},"timestamp":1795262400}}}"#, .invalidPayload),
        (
            #"{"payload":{"aps":{"content-state":{},"timestamp":1.5,"event":"update"}}}"#,
            .invalidPayload
        ),
        (
            #"{"payload":{"aps":{"content-state":1,"timestamp":1795262400,"event":"update"}}}"#,
            .invalidPayload
        ),
        (#"{"payload":{"aps":{\#(start)}}}"#, .invalidPayload),
        (#"{"payload":{"aps":{\#(start),"alert":"x","stale-date":"soon"}}}"#, .invalidPayload),
        (#"{"priority":1,"payload":{"aps":{\#(start),"alert":"x"}}}"#, .invalidPriority),
        (#"{"priority":10,"pushType":"background"}"#, .invalidPriority),
        (#"{"classes":["control"],"payload":{"aps":{"alert":"x"}}}"#, .invalidField),
        (#"{"classes":["device"],"pushType":"widgets"}"#, .invalidField),
        (#"{"classes":["device"],"pushType":"voip","payload":{}}"#, .invalidField),
    ])
    func `a push that APNs or the device would drop is a dead letter`(
        event: String, code: UnreadableCode
    ) {
        #expect(refusal { _ = try decodeEvent(event) } == code)
    }

    @Test func `a payload may be as large as its push type allows`() throws {
        func event(_ type: String, _ bytes: Int) -> String {
            let filler = String(repeating: "x", count: bytes - #"{"a":""}"#.utf8.count)
            return #"{"pushType":"\#(type)","payload":{"a":"\#(filler)"}}"#
        }
        for (type, most) in [("voip", 5120), ("complication", 4096)] {
            #expect(try decodeEvent(event(type, most)).payload?.utf8.count == most)
            #expect(refusal { _ = try decodeEvent(event(type, most + 1)) } == .payloadTooLarge)
        }
    }

    @Test func `a payload over 4096 bytes is for channels alone, if the event says so`() throws {
        func event(_ bytes: Int, classes: String) -> String {
            let head = #"{"aps":{"timestamp":1795262400,"event":"update","content-state":{"a":""#
            let filler = String(repeating: "x", count: bytes - head.utf8.count - 4)
            return #"{"classes":[\#(classes)],"payload":\#(head)\#(filler)"}}}}"#
        }
        let channels = #""channel""#
        let event5120 = try decodeEvent(event(5120, classes: channels))
        #expect(event5120.payload?.utf8.count == 5120)
        for (bytes, classes) in [
            (5121, channels), (4097, #""liveActivity""#), (4097, #""channel","liveActivity""#),
        ] {
            #expect(
                refusal { _ = try decodeEvent(event(bytes, classes: classes)) } == .payloadTooLarge)
        }
        #expect(try decodeEvent(event(4096, classes: #""liveActivity""#)).payload != nil)
    }
}
