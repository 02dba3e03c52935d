// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import LinuxIO
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

extension AwaitedAnswer {
    /// Has a thread of its own do what may block: the threads that tasks run on are as few as the cores.
    ///
    /// - Parameters:
    ///   - name: the thread's, at most 15 bytes.
    ///   - cancelled: what is returned as soon as the task is cancelled, while the thread goes on; nil to wait for
    ///     its end all the same.
    /// - Throws: where there is no thread.
    package static func onThread(
        named name: String, cancelled: Value? = nil, _ work: @escaping @Sendable () -> Value
    ) async throws(SystemError) -> Value {
        let answer = AwaitedAnswer()
        try NamedThread.detach(name: name) { answer.tell(work()) }
        return await withTaskCancellationHandler {
            await answer.value
        } onCancel: {
            if let cancelled { answer.tell(cancelled) }
        }
    }
}
