// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Simdjson
import Testing

@testable import RegistrarRules

@Suite struct `The members of a snapshot` {
    private static let key = InstallationKey(
        environment: .production, app: "com.example.Home", installation: "6F1C")

    /// Where a body is refused; nil if it is accepted.
    private static func refused(_ json: String, isSet: Bool = false) -> String? {
        var parser = JSONParser(bytesMax: 1 << 20, depthMax: 16)
        return Array(json.utf8).withUnsafeBytes { bytes in
            do throws(InvalidMember) {
                let object = try SnapshotReader.object(in: bytes, parser: &parser)
                if isSet {
                    _ = try SnapshotReader().completeSet(object, of: key)
                } else {
                    _ = try SnapshotReader().snapshot(object, of: key, .controls, handler: "Garage")
                }
                return nil
            } catch { return error.pointer }
        }
    }

    @Test(arguments: [
        (#"{"targets":[],"sequense":1}"#, "/sequense"),
        (#"{"targets":[{"tokn":"00"}]}"#, "/targets/0/tokn"),
        (#"{"targets":[{"token":"00","show":[]}]}"#, "/targets/0/show"),
        (#"{"targets":[{"token":"00","shows":[{"knd":"k"}]}]}"#, "/targets/0/shows/0/knd"),
        (#"{"targets":[],"handlers":{}}"#, "/handlers"),
        (#"{"targets":[],"a/b~":1}"#, "/a~1b~0"),
    ])
    func `a mistyped member does not count as left out`(json: String, place: String) {
        #expect(Self.refused(json) == place)
    }

    @Test func `what a client keeps in its outbox is a body`() {
        let places =
            #""v":1,"environment":"production","app":"com.example.Home","installation":"6F1C","#
            + #""class":"controls""#
        #expect(
            Self.refused(
                #"{\#(places),"handler":"Garage","sequence":1,"targets":[{"token":"00","shows":[]}]}"#
            )
                == nil)
        #expect(
            Self.refused(#"{\#(places),"sequence":1,"handlers":{"Garage":[]}}"#, isSet: true) == nil
        )
        // A member without a value counts as absent.
        #expect(Self.refused(#"{"targets":[],"sequence":null,"note":null}"#) == nil)
    }

    @Test func `a complete set names each record once`() {
        #expect(
            Self.refused(#"{"handlers":{"default":[],"default.controls":[]}}"#, isSet: true)
                == "/handlers/default.controls")
        #expect(
            Self.refused(#"{"handlers":{"default.widgets":[]}}"#, isSet: true)
                == "/handlers/default.widgets")
        #expect(
            Self.refused(#"{"handlers":{"default":[],"G":[{"tokn":"0"}]}}"#, isSet: true)
                == "/handlers/G/0/tokn")
        #expect(Self.refused(#"{"handlers":{"default":[],"Garage":[]}}"#, isSet: true) == nil)
    }
}
