// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// Makes the struct that holds one be passed by address. Swift passes a large noncopyable struct to
/// a method that only reads it by copying its fields to the stack; an atomic has an address of its
/// own, so that whatever holds one cannot be moved about.
package struct PassedByAddress: ~Copyable, Sendable {
    private let anchor = Atomic<UInt8>(0)
    package init() {}
}
