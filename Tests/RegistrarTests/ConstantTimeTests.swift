// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import OpenSSL
import Testing

@Suite struct `Constant time` {
    @Test func `compares bytes`() {
        #expect(ConstantTime.isEqual([], []))
        #expect(ConstantTime.isEqual([1, 2, 3], [1, 2, 3]))
        #expect(!ConstantTime.isEqual([1, 2, 3], [1, 2, 4]))
        #expect(!ConstantTime.isEqual([1, 2, 3], [1, 2]))
    }
}
