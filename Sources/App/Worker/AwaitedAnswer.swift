// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// A value that threads pass to the one task that awaits it. The first one counts.
package final class AwaitedAnswer<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Value, Never>)
        case told(Value)
        case taken
    }

    private let state = Mutex(State.open)

    package init() {}

    /// Whether a value has been told, so that a further one would not count.
    var isTold: Bool {
        state.withLock { state in
            switch state {
            case .open, .awaited: false
            case .told, .taken: true
            }
        }
    }

    package func tell(_ value: Value) {
        let continuation = state.withLock { state -> CheckedContinuation<Value, Never>? in
            switch state {
            case .open:
                state = .told(value)
                return nil
            case .awaited(let continuation):
                state = .taken
                return continuation
            case .told, .taken:
                return nil
            }
        }
        continuation?.resume(returning: value)
    }

    /// Waits for the first answer. One task may ask, once.
    package var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let told = state.withLock { state -> Value? in
                    switch state {
                    case .open:
                        state = .awaited(continuation)
                        return nil
                    case .told(let value):
                        state = .taken
                        return value
                    case .awaited, .taken: preconditionFailure("an answer is awaited once")
                    }
                }
                if let told { continuation.resume(returning: told) }
            }
        }
    }
}
