// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import RecordFormats

/// Documents that the decoders and the JSON Schemas must judge alike.
enum IntakeSamples {
    static let goodEvents = [
        "{}",
        #"{"v":1}"#,
        #"{"v":null,"subject":null,"kinds":null,"payload":null,"priority":null,"ttlSeconds":null}"#,
        #"{"subject":"door-42","unknown":[{"deep":true}]}"#,
        #"{"id":"01J","time":"2026-11-21T06:12:00.123Z"}"#,
        #"{"time":"2026-11-21T06:12:00+01:00","expiresAt":"2026-11-22T06:12:00Z"}"#,
        #"{"environment":"production","app":"com.example.Home"}"#,
        #"{"environment":"sandbox"}"#,
        #"{"kinds":["com.example.garageDoor"],"classes":["control","widget","device"]}"#,
        #"{"ttlSeconds":1,"priority":1}"#,
        #"{"ttlSeconds":2592000,"priority":10,"expiresAt":null}"#,
        #"{"collapseID":"score-7","apnsExpiration":"none"}"#,
        #"""
        {"payload":{"aps":{"alert":{"title":"Goal"},"sound":"default"},"match":7},
         "priority":10}
        """#,
        #"{"payload":{"aps":{"badge":0}}}"#,
        // Seed 003: a message center's background push, with the message beside aps.
        #"{"payload":{"aps":{"content-available":1},"messageID":"m-1"},"priority":5}"#,
        #"{"payload":{"aps":{"content-available":1,"alert":"New message"}},"priority":10}"#,
        #"{"shard":null}"#,
        #"{"shard":{"index":3,"of":4,"topic":"orders","partition":7,"offset":12345}}"#,
        #"""
        {"shard":{"index":0,"of":1,"topic":"o","partition":0,"offset":0,
         "notBefore":"2026-11-21T06:12:00.123Z","writtenAt":"2026-11-21T06:11:59Z"}}
        """#,
    ]

    static let badEvents: [(String, UnreadableCode)] = [
        ("{", .invalidJSON), ("[]", .notAnObject), ("7", .notAnObject), ("null", .notAnObject),
        (#"{"v":2}"#, .unknownVersion), (#"{"v":"1"}"#, .unknownVersion),
        (#"{"subject":""}"#, .invalidField), (#"{"subject":7}"#, .invalidField),
        (#"{"id":7}"#, .invalidField),
        (#"{"time":"yesterday"}"#, .invalidField), (#"{"time":1700000000}"#, .invalidField),
        (#"{"app":""}"#, .invalidField),
        (#"{"environment":"staging"}"#, .invalidField), (#"{"environment":1}"#, .invalidField),
        (#"{"kinds":[]}"#, .invalidField), (#"{"kinds":"garage"}"#, .invalidField),
        (#"{"kinds":[1]}"#, .invalidField), (#"{"kinds":[""]}"#, .invalidField),
        (#"{"classes":[]}"#, .invalidField), (#"{"classes":["lamp"]}"#, .invalidField),
        (#"{"classes":{}}"#, .invalidField),
        (#"{"ttlSeconds":0}"#, .invalidField), (#"{"ttlSeconds":-1}"#, .invalidField),
        (#"{"ttlSeconds":2592001}"#, .invalidField), (#"{"ttlSeconds":1.5}"#, .invalidField),
        (#"{"ttlSeconds":"60"}"#, .invalidField),
        (#"{"ttlSeconds":60,"expiresAt":"2026-11-22T00:00:00Z"}"#, .invalidField),
        (#"{"expiresAt":"2026-11-22"}"#, .invalidField),
        (#"{"priority":7}"#, .invalidField), (#"{"priority":"10"}"#, .invalidField),
        (#"{"collapseID":""}"#, .invalidField), (#"{"collapseID":" x"}"#, .invalidField),
        (#"{"collapseID":"a\nb"}"#, .invalidField), (#"{"collapseID":7}"#, .invalidField),
        (#"{"collapseID":"\#(String(repeating: "x", count: 65))"}"#, .invalidField),
        (#"{"apnsExpiration":"immediate"}"#, .invalidField),
        (#"{"shard":3}"#, .invalidField), (#"{"shard":{}}"#, .missingField),
        (#"{"shard":{"index":-1,"of":4,"topic":"o","partition":0,"offset":0}}"#, .invalidField),
        (#"{"shard":{"index":0,"of":0,"topic":"o","partition":0,"offset":0}}"#, .invalidField),
        (#"{"shard":{"index":0,"of":5000,"topic":"o","partition":0,"offset":0}}"#, .invalidField),
        (#"{"shard":{"index":0,"of":4,"partition":0,"offset":0}}"#, .missingField),
        (#"{"payload":"text"}"#, .invalidPayload), (#"{"payload":{}}"#, .invalidPayload),
        (#"{"payload":{"aps":[]}}"#, .invalidPayload),
        (#"{"payload":{"aps":{}}}"#, .invalidPayload),
        (#"{"payload":{"aps":{"alert":null}}}"#, .invalidPayload),
        (#"{"payload":{"aps":{"content-available":true}}}"#, .invalidPayload),
        (#"{"payload":{"aps":{"content-changed":true}}}"#, .invalidPayload),
        (#"{"priority":10,"payload":{"aps":{"content-available":1}}}"#, .invalidPriority),
    ]

    static let registrationKey = "production/com.example.Home/6F1C/GarageControls"

    /// Values under `registrationKey`, and how many rows each has.
    static let goodRegistrations: [(String, rows: Int)] = [
        (
            #"""
            {"v":1,"environment":"production","app":"com.example.Home","installation":"6F1C",
             "handler":"GarageControls","sequence":17,"registeredAt":"2026-11-21T06:12:00.123Z",
             "targets":[{"class":"control","token":"00fc13","shows":[
               {"kind":"com.example.garageDoor","subjects":["door-42","door-43"]}]}]}
            """#, 2
        ),
        (#"{"v":1,"targets":[]}"#, 0),
        (#"{"v":1,"targets":[{"class":"control","shows":[{"kind":"k","subjects":["s"]}]}]}"#, 0),
        (#"{"v":1,"targets":[{"class":"control","token":null}]}"#, 0),
        (#"{"v":1,"targets":[{"class":"widget","token":"AB"}]}"#, 1),
        (#"{"v":1,"targets":[{"class":"widget","token":"ab","shows":[{"kind":"k"}]}]}"#, 1),
        (#"{"v":1,"targets":[{"class":"device","token":"ab","onChange":"background"}]}"#, 1),
        (#"{"v":1,"targets":[{"class":"device","token":"ab","shows":[{"subjects":["s"]}]}]}"#, 1),
        (#"{"v":1,"targets":[{"class":"hologram","token":"ab"}]}"#, 0),
        (#"{"v":1,"targets":[{"class":"channel","token":"dHN0LXNyY2gtY2hubA=="}]}"#, 1),
        (#"{"v":1,"targets":[{"class":"device","token":"ab","onChange":"sing"}]}"#, 0),
        (#"{"v":1,"sequence":"odd","targets":[],"extra":1}"#, 0),
    ]

    static let badRegistrations: [(String, UnreadableCode)] = [
        ("", .emptyValue), ("{", .invalidJSON), ("[]", .notAnObject),
        ("{}", .missingField), (#"{"v":1}"#, .missingField), (#"{"targets":[]}"#, .missingField),
        (#"{"v":2,"targets":[]}"#, .unknownVersion),
        (#"{"v":1,"targets":{}}"#, .invalidField), (#"{"v":1,"targets":[1]}"#, .invalidField),
        (#"{"v":1,"targets":[{}]}"#, .missingField),
        (#"{"v":1,"targets":[{"class":1}]}"#, .invalidField),
        (#"{"v":1,"targets":[{"class":"control","token":"abc"}]}"#, .invalidField),
        (#"{"v":1,"targets":[{"class":"control","token":"zz"}]}"#, .invalidField),
        (#"{"v":1,"targets":[{"class":"control","token":""}]}"#, .invalidField),
        (#"{"v":1,"targets":[{"class":"control","token":7}]}"#, .invalidField),
        (#"{"v":1,"targets":[{"class":"control","token":"dHN0LXNyY2gtY2hubA=="}]}"#, .invalidField),
        (#"{"v":1,"targets":[{"class":"channel","token":"abc"}]}"#, .invalidField),
        (#"{"v":1,"targets":[{"class":"device","token":"ab","onChange":1}]}"#, .invalidField),
        (#"{"v":1,"targets":[{"class":"control","token":"ab","shows":{}}]}"#, .invalidField),
        (#"{"v":1,"targets":[{"class":"control","token":"ab","shows":[1]}]}"#, .invalidField),
        (
            #"{"v":1,"targets":[{"class":"control","token":"ab","shows":[{"subjects":[""]}]}]}"#,
            .invalidField
        ),
        (
            #"{"v":1,"targets":[{"class":"control","token":"ab","shows":[{"kind":""}]}]}"#,
            .invalidField
        ),
        (#"{"v":1,"registeredAt":"now","targets":[]}"#, .invalidField),
        (#"{"v":1,"environment":"moon","targets":[]}"#, .invalidField),
        (#"{"v":1,"environment":"development","targets":[]}"#, .keyMismatch),
        (#"{"v":1,"app":"com.example.Car","targets":[]}"#, .keyMismatch),
        (#"{"v":1,"installation":"x","targets":[]}"#, .keyMismatch),
        (#"{"v":1,"handler":"x","targets":[]}"#, .keyMismatch),
    ]

    static let tokenKey = "production/com.example.Home.push-type.controls/00fc13"

    static let goodSuppressions = [
        #"""
        {"v":1,"status":410,"reason":"Unregistered",
         "apnsTimestamp":"2026-11-21T06:12:00.000Z","registeredAt":"2026-11-20T00:00:00Z"}
        """#,
        #"{"v":1,"status":400,"reason":"BadDeviceToken","registeredAt":"2026-11-20T00:00:00Z"}"#,
    ]

    static let badSuppressions: [(String, UnreadableCode)] = [
        ("", .emptyValue), (#"{"status":410}"#, .missingField), (#"{"v":3}"#, .unknownVersion),
        (#"{"v":1,"reason":"x","registeredAt":"2026-11-20T00:00:00Z"}"#, .missingField),
        (#"{"v":1,"status":410,"registeredAt":"2026-11-20T00:00:00Z"}"#, .missingField),
        (#"{"v":1,"status":410,"reason":"x"}"#, .missingField),
        (#"{"v":1,"status":9,"reason":"x","registeredAt":"2026-11-20T00:00:00Z"}"#, .invalidField),
        (#"{"v":1,"status":410,"reason":"","registeredAt":"2026-11-20T00:00:00Z"}"#, .invalidField),
        (#"{"v":1,"status":410,"reason":"x","registeredAt":7}"#, .invalidField),
    ]

    static let goodDeferred = [
        #"""
        {"v":1,"notBefore":"2026-11-21T06:12:00Z","expiresAt":"2026-11-21T07:12:00Z",
         "class":"control","attempts":0}
        """#,
        #"""
        {"v":1,"notBefore":"2026-11-21T06:12:00Z","expiresAt":"2026-11-21T07:12:00Z",
         "class":"device","attempts":3,"lastSentAt":"2026-11-21T06:11:00Z",
         "payload":{"aps":{"alert":"x"}}}
        """#,
        #"""
        {"v":1,"notBefore":"2026-11-21T06:12:00Z","expiresAt":"2026-11-21T07:12:00Z",
         "class":"device","attempts":3,"firstAt":"2026-11-21T06:11:00Z","collapseID":"score 1",
         "priority":0,"apnsExpiration":"immediate","payload":{"aps":{"content-available":1}},
         "source":{"topic":"events","partition":0,"offset":17},"subjectBase64":"/w==",
         "payloadSource":{"topic":"events","partition":1,"offset":4}}
        """#,
    ]

    /// A good one with one more member.
    private static func deferred(with member: String) -> String {
        #"""
        {"v":1,"notBefore":"2026-11-21T06:12:00Z","expiresAt":"2026-11-21T07:12:00Z",
         "class":"control","attempts":0,
        """# + member + "}"
    }

    static let badDeferred: [(String, UnreadableCode)] = [
        (deferred(with: #""priority":7"#), .invalidField),
        (deferred(with: #""apnsExpiration":"soon""#), .invalidField),
        (deferred(with: #""collapseID":" x""#), .invalidField),
        (deferred(with: #""source":"events""#), .invalidField),
        (deferred(with: #""payloadSource":"events""#), .invalidField),
        (deferred(with: #""source":{"topic":"events","partition":-1,"offset":0}"#), .invalidField),
        (deferred(with: #""source":{"topic":"events","partition":0}"#), .missingField),
        (deferred(with: #""subjectBase64":"/w=""#), .invalidField),
        (deferred(with: #""firstAt":"now""#), .invalidField),
        (deferred(with: #""payload":"x""#), .invalidPayload),
        ("", .emptyValue), ("{}", .missingField),
        (#"{"v":1,"notBefore":"2026-11-21T06:12:00Z"}"#, .missingField),
        (
            #"""
            {"v":1,"notBefore":"2026-11-21T06:12:00Z","expiresAt":"2026-11-21T07:12:00Z",
             "class":"lamp","attempts":0}
            """#,
            .invalidField
        ),
        (
            #"""
            {"v":1,"notBefore":"2026-11-21T06:12:00Z","expiresAt":"2026-11-21T07:12:00Z",
             "class":"control","attempts":-1}
            """#,
            .invalidField
        ),
        (
            #"""
            {"v":1,"notBefore":"2026-11-21T06:12:00Z","expiresAt":"2026-11-21T07:12:00Z",
             "class":"control","attempts":0,"payload":[]}
            """#,
            .invalidPayload
        ),
    ]
}
