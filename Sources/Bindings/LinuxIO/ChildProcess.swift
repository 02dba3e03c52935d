// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc
internal import Synchronization

/// A program that cannot outlive us: the kernel kills it when the thread that started it ends, be
/// that by `kill -9`, and `deinit` kills it too. It is in a process group of its own, so a Ctrl-C
/// at the terminal is ours alone.
///
/// The thread that starts it must be one that lasts. After that it may be used from any.
package final class ChildProcess: Sendable {
    package let identifier: Int32
    /// The writing end of the pipe for `say`; nobody reads the pipe where standard input is a file.
    private let input: CInt
    private let ending = Mutex<Ending?>(nil)

    package enum Ending: Hashable, Sendable {
        case exited(Int32)
        case killed(signal: Int32)
    }

    /// - Parameters:
    ///   - environment: `NAME=value` each.
    ///   - output: a file that standard output is appended to.
    ///   - errors: the same for standard error; nil for the same file.
    ///   - input: a file that standard input reads; nil for a pipe that `say` writes to.
    package init(
        executable: String, arguments: [String], environment: [String], output: String,
        errors: String? = nil, input inputFile: String? = nil
    ) throws(SystemError) {
        var pipe: [CInt] = [0, 0]
        guard CLinux_pipe(&pipe) == 0 else { throw .last("pipe2") }
        let (reading, writing) = (pipe[0], pipe[1])
        defer { close(reading) }
        do throws(SystemError) {
            let inputFile = try inputFile.map { (path) throws(SystemError) in
                try LentFile(reading: path)
            }
            let output = try LentFile(appendingTo: output)
            let errors = try errors.map { (path) throws(SystemError) in
                try LentFile(appendingTo: path)
            }
            identifier = try Self.spawn(
                executable, [executable] + arguments, environment,
                input: inputFile?.descriptor ?? reading,
                output: output.descriptor, errors: (errors ?? output).descriptor)
        } catch {
            close(writing)
            throw error
        }
        input = writing
        _ = fcntl(writing, F_SETFL, O_NONBLOCK)
    }

    deinit {
        if poll() == nil {
            kill(identifier, SIGKILL)
            var status: CInt = 0
            while waitpid(identifier, &status, 0) < 0 && errno == EINTR {}
        }
        close(input)
    }

    /// How it has ended, without waiting; nil while it runs.
    package func poll() -> Ending? {
        ending.withLock { poll(&$0) }
    }

    package func signal(_ number: Int32) {
        // After it was reaped, the number may be another's: nobody reaps it in between.
        ending.withLock { if poll(&$0) == nil { kill(identifier, number) } }
    }

    private func poll(_ ending: inout Ending?) -> Ending? {
        var status: CInt = 0
        guard ending == nil, waitpid(identifier, &status, WNOHANG) == identifier else {
            return ending
        }
        // WIFEXITED and its companions are macros with casts.
        let signal = status & 0x7F
        ending = signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal: signal)
        return ending
    }

    /// Writes a line to the program's standard input; false when the pipe does not take it.
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

/// A file that stays open as long as this object lives, to be handed on to a child.
private final class LentFile {
    let descriptor: CInt

    convenience init(appendingTo path: String) throws(SystemError) {
        try self.init(path, O_WRONLY | O_CREAT | O_APPEND)
    }

    convenience init(reading path: String) throws(SystemError) { try self.init(path, O_RDONLY) }

    private init(_ path: String, _ flags: CInt) throws(SystemError) {
        descriptor = open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .last("open \(path)") }
    }

    deinit { close(descriptor) }
}
