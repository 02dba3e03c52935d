// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable import RegistrarAccess

@Suite struct `A JSON Web Key Set` {
    private static func count(_ key: String) -> Int {
        (try? JSONWebKeySet(TokenIssuer.set(key)))?.keys.count ?? 0
    }

    @Test func `keys for ES256 and RS256 are read, and what they say of themselves must agree`()
        throws
    {
        for (issuer, algorithm, other) in [
            (try TokenIssuer.es256(), "ES256", "RS256"),
            (try TokenIssuer.rs256(), "RS256", "ES256"),
        ] {
            #expect(Self.count(issuer.jwk()) == 1)
            #expect(Self.count(issuer.jwk(#""use":"sig","alg":"\#(algorithm)""#)) == 1)
            #expect(Self.count(issuer.jwk(#""key_ops":["verify"]"#)) == 1)
            for wrong in [
                #""alg":"\#(other)""#, #""alg":"HS256""#, #""alg":"none""#, #""alg":1"#,
                #""alg":null"#, #""use":"enc""#, #""use":1"#, #""use":null"#,
                #""key_ops":["sign"]"#, #""key_ops":[]"#, #""key_ops":"verify""#,
                #""kty":"oct""#, #""kty":1"#, #""kid":7"#,
            ] { #expect(Self.count(issuer.jwk(wrong)) == 0, "\(wrong)") }
        }
    }

    @Test func `an RSA key below 2048 bits is passed over`() throws {
        #expect(Self.count(try TokenIssuer.rs256(bits: 1024).jwk()) == 0)
        #expect(Self.count(try TokenIssuer.rs256(bits: 2048).jwk(#""e":"AQ""#)) == 0)
        #expect(Self.count(try TokenIssuer.rs256(bits: 2048).jwk(#""e":"Ag""#)) == 0)
        #expect(Self.count(try TokenIssuer.rs256(bits: 2048).jwk(#""e":"Aw""#)) == 1)
    }

    @Test func `a point that is not on P-256 is passed over`() throws {
        let issuer = try TokenIssuer.es256()
        let zero = Base64URL.encode([UInt8](repeating: 0, count: 32))
        for wrong in [
            #""x":"\#(zero)""#, #""x":"AA""#, #""crv":"P-384""#, #""crv":"secp256k1""#,
            #""y":"****""#,
        ] { #expect(Self.count(issuer.jwk(wrong)) == 0, "\(wrong)") }
    }

    @Test func `keys of other kinds are passed over and counted`() throws {
        let set = try JSONWebKeySet(
            TokenIssuer.set(
                #"{"kty":"oct","k":"AAAA"}"#, "1", "{}", try TokenIssuer.es256().jwk()))
        #expect(set.keys.count == 1)
        #expect(set.passedOver == 3)
    }

    @Test(arguments: [
        "", "{}", "[]", #"{"keys":{}}"#, #"{"keys":[]}"#, #"{"keys":[{"kty":"oct","k":"AA"}]}"#,
        #"{"keys":["#, "\u{0}",
    ])
    func `a set without a key is refused`(text: String) {
        #expect(throws: FileFault.self) { try JSONWebKeySet(Array(text.utf8)) }
    }

    @Test func `a set has at most 100 keys`() throws {
        let key = try TokenIssuer.es256().jwk()
        let hundred = [String](repeating: key, count: 100).joined(separator: ",")
        #expect(try JSONWebKeySet(TokenIssuer.set(hundred)).keys.count == 100)
        #expect(throws: FileFault("has more than 100 keys")) {
            try JSONWebKeySet(TokenIssuer.set(hundred, key))
        }
    }

    @Test func `a token without a key ID is tried with the only key for its algorithm`() throws {
        let one = try TokenIssuer.es256("a")
        let other = try TokenIssuer.es256("b")
        let rsa = try TokenIssuer.rs256("a")
        let set = try JSONWebKeySet(TokenIssuer.set(one.jwk(), rsa.jwk()))
        #expect(set.candidates(id: nil, .es256).count == 1)
        #expect(set.candidates(id: "a", .es256).count == 1)
        #expect(set.candidates(id: "a", .rs256).first?.algorithm == .rs256)
        #expect(set.candidates(id: "A", .es256).isEmpty)
        let two = try JSONWebKeySet(TokenIssuer.set(one.jwk(), other.jwk()))
        #expect(two.candidates(id: nil, .es256).isEmpty)
    }

    /// RFC 7515, A.2 and A.3.
    @Test(arguments: [
        (
            #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#
                + #""y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
            "eyJhbGciOiJFUzI1NiJ9",
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
        ),
        (
            #"{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26"#
                + "mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b3"
                + "2690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBE"
                + "Ma2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAc"
                + #"o9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}"#,
            "eyJhbGciOiJSUzI1NiJ9",
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_"
                + "O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xB"
                + "ArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc"
                + "6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igc"
                + "N_IoypGlUPQGe77Rw"
        ),
    ])
    func `the examples of RFC 7515 are verified`(
        key: String, header: String, signature: String
    ) throws {
        let payload =
            "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290"
            + "Ijp0cnVlfQ"
        let token = try JSONWebToken("\(header).\(payload).\(signature)")
        let set = try JSONWebKeySet(TokenIssuer.set(key))
        let candidate = try #require(set.candidates(id: token.keyID, token.algorithm).first)
        #expect(candidate.verify(token.signed, signature: token.signature))
        #expect(!candidate.verify(token.signed + [0], signature: token.signature))
        #expect(!candidate.verify(token.signed, signature: Array(token.signature.dropLast())))
    }
}
