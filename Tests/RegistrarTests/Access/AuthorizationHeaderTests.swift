// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable import RegistrarAccess

@Suite struct `An authorization header` {
    @Test func `a bearer is read whatever the case of its scheme`() {
        #expect(AuthorizationHeader("Bearer llr_x") == .bearer("llr_x"))
        #expect(AuthorizationHeader("bEARER   a.b-c_d~e+f/g==") == .bearer("a.b-c_d~e+f/g=="))
        #expect(AuthorizationHeader("Basic dXNlcg==") == .other)
        #expect(AuthorizationHeader("Negotiate") == .other)
    }

    @Test(arguments: [
        "", " ", " Bearer a", "Bearer", "Bearer ", "Bearer a b", "Bearer a,b", "Bearer a\tb",
        "Bearer \u{E4}", "Bearer a\r\nb", "Bearer a\0",
    ])
    func `a malformed bearer is refused`(value: String) {
        #expect(AuthorizationHeader(value) == nil)
    }

    @Test func `a header beyond 12 KiB is refused unread`() {
        let rest = String(repeating: "a", count: AuthorizationHeader.bytesMax - 7)
        #expect(AuthorizationHeader("Bearer " + rest) != nil)
        #expect(AuthorizationHeader("Bearer a" + rest) == nil)
    }

    @Test func `the parameters of App Attest come in any order, and others are ignored`() throws {
        let header = AuthorizationHeader(
            #"appattest Date="d" , x="1",assertion="a+/=",  credential="c""#)
        guard case .appAttest(let parameters) = header else {
            Issue.record("\(String(describing: header))")
            return
        }
        #expect(parameters.credential == "c")
        #expect(parameters.assertion == "a+/=")
        #expect(parameters.date == "d")
    }

    @Test(arguments: [
        #"credential="c", assertion="a""#, #"credential="c", assertion="a", date=d"#,
        #"credential="c", assertion="a", date="d","#, #"credential="c", assertion="a", date="d"#,
        #"credential="c", credential="c", assertion="a", date="d""#,
        #"credential="c" assertion="a", date="d""#, #"credential="c\"", assertion="a", date="d""#,
        #"="c", credential="c", assertion="a", date="d""#, "",
        #"a="",b="",c="",d="",e="",f="",credential="c", assertion="a", date="d""#,
    ])
    func `malformed parameters of App Attest are refused`(parameters: String) {
        #expect(AuthorizationHeader("AppAttest " + parameters) == nil)
    }
}
