// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import RegistrarRules
import Simdjson
import Testing

@Suite struct `The rules of a request` {
    static let key = InstallationKey(
        environment: .production, app: "com.example.Home", installation: "6F1C")

    static func status(_ check: () throws(Problem) -> Void) -> Int {
        do throws(Problem) { try check() } catch { return error.status }
        return 200
    }

    @Test(arguments: [
        ("application/json", 200), ("Application/JSON ; charset=UTF-8", 200),
        ("application/json;charset=\"utf-8\"", 200), ("application/json; profile=x", 200),
        ("application/json; charset=iso-8859-1", 415), ("application/json; charset", 415),
        ("application/json; charset=utf-16", 415), ("text/json", 415), ("", 415), (";", 415),
    ]) func `a body is JSON in UTF-8`(type: String, status: Int) {
        let found = Self.status { () throws(Problem) in
            try RequestRules.check(contentType: [type], hasBody: true)
        }
        #expect(found == status)
    }

    @Test func `a body has one type, and no body needs none`() {
        let type = "application/json"
        for (types, hasBody, status) in [
            ([type, type], true, 415), ([], true, 415), ([], false, 200),
            (["text/plain"], false, 415),
        ] {
            let found = Self.status { () throws(Problem) in
                try RequestRules.check(contentType: types, hasBody: hasBody)
            }
            #expect(found == status)
        }
    }

    @Test(arguments: [
        ([], 200), (["identity"], 200), (["Identity, identity"], 200), (["gzip"], 415),
        (["identity, gzip"], 415), (["identity", "br"], 415),
    ]) func `a body has no encoding`(encodings: [String], status: Int) {
        let found = Self.status { () throws(Problem) in
            try RequestRules.check(contentEncoding: encodings)
        }
        #expect(found == status)
    }

    @Test func `only a removal has a query, and that one parameter`() {
        let routes: [RegistrarRoute] = [
            .installation(Self.key), .all(Self.key, .controls),
            .handler(Self.key, .widgets, "Board"),
        ]
        for route in routes {
            for (names, method, status) in [
                (["belowSequence"], "DELETE", 200), (["belowsequence"], "DELETE", 422),
                (["belowSequence", "x"], "DELETE", 422), (["belowSequence"], "PUT", 422),
                (["belowSequence"], "GET", 422), ([], "PUT", 200),
            ] {
                let found = Self.status { () throws(Problem) in
                    try RequestRules.check(queryNames: names, method: method, route)
                }
                #expect(found == status, "\(method) \(names)")
            }
        }
        let found = Self.status { () throws(Problem) in
            try RequestRules.check(
                queryNames: ["belowSequence"], method: "POST",
                .batch(.production, app: "com.example.Home"))
        }
        #expect(found == 422)
    }

    @Test(arguments: [
        ("0", 200), ("9007199254740991", 200), ("9007199254740992", 422), ("-1", 422), ("+1", 422),
        ("", 422), ("1.0", 422), ("99999999999999999999", 422),
    ]) func `a sequence is digits`(text: String, status: Int) {
        let found = Self.status { () throws(Problem) in _ = try RequestRules.sequence(text) }
        #expect(found == status)
    }

    @Test(arguments: [".", ".."]) func `a name is not one that paths lose`(name: String) {
        #expect(!InstallationKey.isName(name))
        for path in [
            "/v1/apps/\(name)/environments/production/batch",
            "/v1/apps/a/environments/production/installations/\(name)",
            "/v1/apps/a/environments/production/installations/i/controls/\(name)",
            "/v1/apps/a/environments/production/installations/i/controls/%2E%2e",
        ] {
            #expect(throws: RegistrarRoute.Failure.self) { try RegistrarRoute(path: path) }
        }
        #expect(InstallationKey.isName("...") && InstallationKey.isName(".a"))
    }

    @Test(arguments: [
        ("a,b/environments/production/batch", "app", ["POST"]),
        ("a,b/environments/sandbox/installations/i", "app", ["GET", "DELETE"]),
        ("a/environments/staging/installations/i", "environment", ["GET", "DELETE"]),
        ("a/environments/production/installations/,/attest", "installation", ["POST"]),
        ("a/environments/production/installations/,/attest/challenge", "installation", ["POST"]),
        (
            "a/environments/production/installations/,/controls", "installation",
            ["GET", "PUT", "DELETE"]
        ),
        (
            "a/environments/production/installations/i/widgets/,", "handler",
            ["GET", "PUT", "DELETE"]
        ),
    ])
    func `a name that is not allowed leaves a path the methods of its kind`(
        path: String, part: String, methods: [String]
    ) {
        let failure = #expect(throws: RegistrarRoute.Failure.self) {
            try RegistrarRoute(path: "/v1/apps/" + path)
        }
        guard case .invalid(part, _, methods)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
    }

    @Test(arguments: [
        (#"{"sequence":1,"sequence":2,"targets":[]}"#, "/sequence"),
        (#"{"targets":[{"token":"aa","token":"bb"}]}"#, "/targets/0/token"),
        (#"{"targets":[],"more":[1,{"a/b":{},"a/b":1}]}"#, "/more/1/a~1b"),
        (
            #"{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"#
                + #""n":0,"o":0,"p":0,"q":0,"targets":[],"a":1}"#, "/a"
        ),
        (#"{"class":"widgets","targets":[{"class":"widget","token":"aa"}]}"#, nil),
    ]) func `a member is there once`(body: String, pointer: String?) {
        #expect(Self.refusedMember(of: body) == pointer)
    }

    @Test(arguments: [
        (#"{"environment":"development","targets":[]}"#, "/environment"),
        (#"{"environment":"sandbox","targets":[]}"#, "/environment"),
        (#"{"app":"com.example.Other","targets":[]}"#, "/app"),
        (#"{"installation":"6F1D","targets":[]}"#, "/installation"),
        (#"{"handler":"Garage","targets":[]}"#, "/handler"),
        (#"{"handler":1,"targets":[]}"#, "/handler"),
        (
            #"{"environment":"production","app":"com.example.Home","installation":"6F1C","#
                + #""handler":"Board","targets":[]}"#, nil
        ),
    ]) func `a body names nobody else than its path`(body: String, pointer: String?) {
        #expect(Self.refusedMember(of: body) == pointer)
    }

    @Test func `a name in a path may be encoded`() throws {
        let path = "/v1/apps/com.example.Home/environments/production/installations/6F1C/controls/"
        for name in ["Garage", "G%61rage", "%47%61rage"] {
            let route = try RegistrarRoute(path: path + name)
            #expect(route == .handler(Self.key, .controls, "Garage"))
        }
    }

    /// The pointer to what is wrong with a body for the widgets of a handler.
    static func refusedMember(of body: String) -> String? {
        var parser = JSONParser(bytesMax: 1 << 20, depthMax: 16)
        var body = body
        return body.withUTF8 { bytes -> String? in
            do throws(InvalidMember) {
                _ = try SnapshotReader().snapshot(
                    SnapshotReader.object(in: UnsafeRawBufferPointer(bytes), parser: &parser),
                    of: Self.key, .widgets, handler: "Board")
                return nil
            } catch { return error.pointer }
        }
    }
}
