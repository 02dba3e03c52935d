// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc

/// A program that cannot outlive us: the kernel kills it when the thread that started it ends, be
/// that by `kill -9`, and `deinit` kills it too. It is in a process group of its own, so a Ctrl-C
/// at the terminal is ours alone.
///
/// Belongs to one thread, which must be one that lasts: the main thread.
package final class ChildProcess {
    package let identifier: Int32
    private let input: CInt
    private var ending: Ending?

    package enum Ending: Hashable, Sendable {
        case exited(Int32)
        case killed(signal: Int32)
    }

    /// - Parameters:
    ///   - environment: `NAME=value` each.
    ///   - output: a file that standard output is appended to.
    ///   - errors: the same for standard error; nil for the same file.
    package init(
        executable: String, arguments: [String], environment: [String], output: String,
        errors: String? = nil
    ) throws(SystemError) {
        var pipe: [CInt] = [0, 0]
        guard CLinux_pipe(&pipe) == 0 else { throw .last("pipe2") }
        let (reading, writing) = (pipe[0], pipe[1])
        defer { close(reading) }
        do throws(SystemError) {
            let output = try LentFile(appendingTo: output)
            let errors = try errors.map { (path) throws(SystemError) in
                try LentFile(appendingTo: path)
            }
            identifier = try Self.spawn(
                executable, [executable] + arguments, environment, input: reading,
                output: output.descriptor, errors: (errors ?? output).descriptor)
        } catch {
            close(writing)
            throw error
        }
        input = writing
        _ = fcntl(writing, F_SETFL, O_NONBLOCK)
    }

    deinit {
        if ending == nil, poll() == nil {
            kill(identifier, SIGKILL)
            var status: CInt = 0
            while waitpid(identifier, &status, 0) < 0 && errno == EINTR {}
        }
        close(input)
    }

    /// How it has ended, without waiting; nil while it runs.
    package func poll() -> Ending? {
        if let ending { return ending }
        var status: CInt = 0
        guard waitpid(identifier, &status, WNOHANG) == identifier else { return nil }
        // WIFEXITED and its companions are macros with casts.
        let signal = status & 0x7F
        ending = signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal: signal)
        return ending
    }

    package func signal(_ number: Int32) {
        // After it was reaped, the number may be another's.
        if poll() == nil { kill(identifier, number) }
    }

    /// A line for its standard input; false when it does not take it.
    package func say(_ line: String) -> Bool {
        let bytes = Array((line + "\n").utf8)
        return write(input, bytes, bytes.count) == bytes.count
    }

    private static func spawn(
        _ executable: String, _ arguments: [String], _ environment: [String], input: CInt,
        output: CInt, errors: CInt
    ) throws(SystemError) -> Int32 {
        var arguments = arguments.map { strdup($0) } + [nil]
        var environment = environment.map { strdup($0) } + [nil]
        defer { for text in arguments + environment { free(text) } }
        let child = CLinux_spawn(executable, &arguments, &environment, input, output, errors)
        guard child > 0 else { throw .last("fork") }
        return child
    }
}

/// An open file, for as long as it takes to hand it on.
private final class LentFile {
    let descriptor: CInt

    init(appendingTo path: String) throws(SystemError) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .last("open \(path)") }
    }

    deinit { close(descriptor) }
}
