// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import Testing

@Suite struct `Message authentication` {
    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Test cases 1, 2 and 6 of RFC 4231.
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0B, count: 20), "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xAA, count: 131),
            "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ])
    func `the examples of RFC 4231 have their HMAC`(key: [UInt8], message: String, hmac: String) {
        #expect(Self.hexadecimal(HMACSHA256.of(Array(message.utf8), key: key)) == hmac)
    }

    @Test func `secrets are equal if all of their bytes are`() {
        #expect(ConstantTime.isEqual([], []))
        #expect(ConstantTime.isEqual([1, 2, 3], [1, 2, 3]))
        #expect(!ConstantTime.isEqual([1, 2, 3], [1, 2, 4]))
        #expect(!ConstantTime.isEqual([1, 2, 3], [0, 2, 3]))
        #expect(!ConstantTime.isEqual([1, 2, 3], [1, 2]) && !ConstantTime.isEqual([], [0]))
    }

    @Test func `random bytes differ each time`() {
        #expect(RandomBytes.make(0).isEmpty)
        #expect(Set((0..<100).map { _ in RandomBytes.make(16) }).count == 100)
        #expect(RandomBytes.make(1000).count == 1000)
    }
}
