// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery

/// Outcomes on their way back to the planner, handed over in batches.
struct OutcomeBatch: ~Copyable {
    private let port: DeliveryPort
    private let outcomes: UnsafeMutableBufferPointer<PushOutcome>
    private var count = 0

    init(port: DeliveryPort) {
        self.port = port
        outcomes = .allocate(capacity: 512)
    }

    deinit { outcomes.deallocate() }

    mutating func append(_ outcome: PushOutcome) {
        if count == outcomes.count { flush() }
        assert(count < outcomes.count, "a batch has room for an outcome, for a full one is flushed")
        outcomes[count] = outcome
        count &+= 1
    }

    mutating func flush() {
        port.deliver(UnsafeBufferPointer(rebasing: outcomes[..<count]))
        count = 0
    }
}
