// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// The snapshots that the registrar has not acknowledged yet, each in a file of its own in a folder
/// that the app and its extensions share.
///
/// A snapshot that ``put(_:_:since:)`` has returned survives a kill and a power cut. There is at most
/// one for each handler: a newer one replaces the older. Any number of processes and threads may use
/// the same folder; each operation holds the folder's lock for a few milliseconds.
public struct Outbox: Sendable {
    /// The most snapshots that wait: beyond it the oldest is dropped and reported. An app has a handful
    /// of handlers; only Live Activities that come and go while there is no network reach it.
    public static let snapshotsMax = 64
    /// The most files that are kept of what was set aside, for whoever looks for the reason.
    public static let setAsideMax = 16

    let folder: URL
    let now: @Sendable () -> Date

    /// - Parameters:
    ///   - folder: In the app group's container. It is created when something is put, and left out of
    ///     backups: restored on another device its snapshots would describe the wrong one.
    public init(folder: URL, now: @escaping @Sendable () -> Date = { Date() }) {
        self.folder = folder
        self.now = now
    }

    /// A moment in the order of snapshots; see ``put(_:_:since:)``.
    public struct Mark: Hashable, Sendable {
        let sequence: Int64
    }

    /// Take it before asking the system what there is.
    public func mark() throws -> Mark {
        try locked { Mark(sequence: try readState().last) }
    }

    /// Writes a snapshot, which replaces one that waits under the same address. A complete set of
    /// controls replaces those of all control handlers; a handler's snapshot becomes a part of a
    /// complete set that waits.
    ///
    /// - Parameter mark: Nothing is written if a snapshot of the same class has been put since then:
    ///   what was read before it is older.
    /// - Returns: The snapshot as it is stored; nil if `mark` kept it out.
    @discardableResult
    public func put(
        _ address: Address, _ content: Snapshot.Content, since mark: Mark? = nil
    ) throws -> Snapshot? {
        try locked {
            var state = try readState()
            let group = address.tokenClass?.rawValue ?? "installation"
            if let mark, state.putLast[group, default: 0] > mark.sequence { return nil }
            let sequence = try next(&state, after: 0)
            state.putLast[group] = sequence
            try write(state)

            var snapshot = Snapshot(address: address, sequence: sequence, content: content)
            if let handler = address.handler, address.tokenClass == .controls,
                let complete = try? read(fileOfCompleteSet(with: address)),
                case .controls(var handlers) = complete.content
            {
                if case .targets(let targets) = content {
                    handlers[handler] = targets
                } else {
                    handlers[handler] = nil
                }
                snapshot.address = complete.address
                snapshot.content = .controls(handlers)
            }
            try write(snapshot)
            try removeReplaced(by: snapshot)
            return snapshot
        }
    }

    /// What waits, oldest first.
    public struct Pending: Sendable {
        public var snapshots: [Snapshot] = []
        /// Files that could not be read, and where they are now.
        public var corrupt: [URL] = []
        /// Snapshots that were dropped because there were too many.
        public var dropped: [Snapshot] = []
    }

    /// - Parameter installation: Snapshots of another one are deleted, except its removal: they
    ///   came with a backup of another device, or precede ``RegistrationClient/forget()``.
    public func pending(of installation: String) throws -> Pending {
        try locked {
            var pending = Pending()
            for url in try files() {
                do {
                    let snapshot = try read(url)
                    guard file(of: snapshot.address).path == url.path else {
                        throw CocoaError(.fileReadCorruptFile)
                    }
                    if snapshot.address.installation != installation, snapshot.content != .removal {
                        try DurableFile.remove(url)
                    } else {
                        pending.snapshots.append(snapshot)
                    }
                } catch {
                    pending.corrupt.append(try setAside(url, reason: String(describing: error)))
                }
            }
            pending.snapshots.sort { $0.sequence < $1.sequence }
            // A kill can come between writing a complete set and deleting what it replaces.
            for snapshot in pending.snapshots where snapshot.replacesHandlers {
                try removeReplaced(by: snapshot)
                pending.snapshots.removeAll { $0.isReplaced(by: snapshot) }
            }
            while pending.snapshots.count > Self.snapshotsMax {
                let oldest = pending.snapshots.removeFirst()
                try DurableFile.remove(file(of: oldest.address))
                pending.dropped.append(oldest)
            }
            return pending
        }
    }

    /// The registrar has the snapshot: its file is deleted, unless a newer one has replaced it.
    public func acknowledge(_ snapshot: Snapshot) throws {
        try locked {
            guard let url = try current(snapshot) else { return }
            try DurableFile.remove(url)
        }
    }

    /// The registrar has stored a sequence that is not less than the snapshot's: after a reinstallation
    /// or a wrong clock.
    ///
    /// - Returns: The snapshot with a greater sequence; nil if a newer one has replaced it meanwhile,
    ///   so that it must not be sent again.
    public func raise(_ snapshot: Snapshot, above stored: Int64) throws -> Snapshot? {
        try locked {
            guard try current(snapshot) != nil else { return nil }
            var state = try readState()
            var raised = snapshot
            raised.sequence = try next(&state, after: stored)
            try write(state)
            try write(raised)
            return raised
        }
    }

    /// The registrar will never accept the snapshot: it is moved out of the way, with the reason.
    public func setAside(_ snapshot: Snapshot, reason: String) throws {
        try locked {
            guard let url = try current(snapshot) else { return }
            _ = try setAside(url, reason: reason)
        }
    }

    /// Gives the installation a new identifier, and what waits goes with it.
    ///
    /// - Parameter old: The identifier that is of no use any more.
    /// - Returns: False if another process has done so already.
    func renewInstallation(_ old: String, in secrets: any SecretStore) throws -> Bool {
        try locked {
            guard try secrets.installation() == old else { return false }
            try secrets.remove("installation")
            let new = try secrets.installation()
            for url in try files() {
                guard var snapshot = try? read(url), snapshot.address.installation == old,
                    snapshot.content != .removal
                else { continue }
                snapshot.address.installation = new
                try write(snapshot)
                try DurableFile.remove(url)
            }
            return true
        }
    }

    // MARK: Sequence numbers

    /// No number is left above the one that the registrar has stored; only a removal helps.
    public struct SequenceExhausted: Error {}

    /// Milliseconds since 1970, so that a reinstallation, which loses the last number, goes on above it;
    /// more, where that would not be greater than the last.
    private func next(_ state: inout State, after stored: Int64) throws -> Int64 {
        let highest = min(max(state.last, stored), Snapshot.sequenceMax)
        let sequence = max(highest + 1, millisecondsNow)
        guard sequence <= Snapshot.sequenceMax else { throw SequenceExhausted() }
        state.last = sequence
        return sequence
    }

    var millisecondsNow: Int64 {
        // The half of the range is the year 144,683: what is above it is no time.
        Int64(min(max(now().timeIntervalSince1970 * 1000, 0), Double(Snapshot.sequenceMax / 2)))
    }

    struct State: Codable {
        var last: Int64 = 0
        /// The last sequence that was put, by class of tokens.
        var putLast: [String: Int64] = [:]
        /// Milliseconds since 1970; 0 for none.
        var notBefore: Int64 = 0
    }

    /// A state that is lost or unreadable is not fatal: the clock and the waiting snapshots replace it.
    func readState() throws -> State {
        if let data = try? Data(contentsOf: stateFile),
            let state = try? JSONDecoder().decode(State.self, from: data),
            (0...Snapshot.sequenceMax).contains(state.last)
        {
            return state
        }
        let sequences = try files().compactMap { try? read($0).sequence }
            .filter { (0...Snapshot.sequenceMax).contains($0) }
        return State(last: sequences.max() ?? 0)
    }

    func write(_ state: State) throws {
        try DurableFile.replace(stateFile, with: try JSONEncoder().encode(state))
    }

    // MARK: Files

    private var pendingFolder: URL { folder.appendingPathComponent("pending", isDirectory: true) }
    private var setAsideFolder: URL {
        folder.appendingPathComponent("set-aside", isDirectory: true)
    }
    var uploadsFolder: URL { folder.appendingPathComponent("uploads", isDirectory: true) }
    private var stateFile: URL { folder.appendingPathComponent("state.json") }

    func locked<Result>(_ body: () throws -> Result) throws -> Result {
        if !FileManager.default.fileExists(atPath: setAsideFolder.path) { try createFolders() }
        return try DurableFile.withLock(folder.appendingPathComponent("lock"), body)
    }

    private func createFolders() throws {
        for url in [folder, pendingFolder, uploadsFolder, setAsideFolder] {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        var excluded = folder
        try? excluded.setResourceValues(values)
    }

    /// `+` is in no name, so that two addresses never share a file.
    private func file(of address: Address) -> URL {
        let parts = [address.tokenClass?.rawValue ?? "installation", address.handler]
        return
            pendingFolder
            .appendingPathComponent("\(address.environment.rawValue)+\(address.installation)")
            .appendingPathComponent(parts.compactMap { $0 }.joined(separator: "+") + ".json")
    }

    private func fileOfCompleteSet(with address: Address) -> URL {
        var address = address
        address.handler = nil
        return file(of: address)
    }

    /// The waiting snapshots' files. What a kill left half written is deleted: under the lock nobody
    /// is writing it any more.
    private func files() throws -> [URL] {
        let manager = FileManager.default
        var files: [URL] = []
        for name in try manager.contentsOfDirectory(atPath: pendingFolder.path).sorted() {
            let folder = pendingFolder.appendingPathComponent(name)
            for file in (try? manager.contentsOfDirectory(atPath: folder.path))?.sorted() ?? [] {
                let url = folder.appendingPathComponent(file)
                if file.hasSuffix(".temporary") {
                    try DurableFile.remove(url)
                } else {
                    files.append(url)
                }
            }
        }
        return files
    }

    func read(_ url: URL) throws -> Snapshot {
        try JSONDecoder().decode(Snapshot.self, from: Data(contentsOf: url))
    }

    private func write(_ snapshot: Snapshot) throws {
        let url = file(of: snapshot.address)
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try DurableFile.replace(url, with: snapshot.encoded())
    }

    private func removeReplaced(by snapshot: Snapshot) throws {
        guard snapshot.replacesHandlers else { return }
        for url in try files() {
            if let other = try? read(url), other.isReplaced(by: snapshot) {
                try DurableFile.remove(url)
            }
        }
    }

    /// Where the snapshot waits, if it is still the newest of its address.
    private func current(_ snapshot: Snapshot) throws -> URL? {
        let url = file(of: snapshot.address)
        guard let stored = try? read(url), stored.sequence == snapshot.sequence else { return nil }
        return url
    }

    private func setAside(_ url: URL, reason: String) throws -> URL {
        let name = "\(millisecondsNow)-\(UUID().uuidString.prefix(8))"
        let target = setAsideFolder.appendingPathComponent(name + ".json")
        try FileManager.default.moveItem(at: url, to: target)
        try? Data(reason.utf8).write(to: setAsideFolder.appendingPathComponent(name + ".reason"))
        let names = try FileManager.default.contentsOfDirectory(atPath: setAsideFolder.path)
            .sorted()
        // Two files each, the oldest first.
        for name in names.prefix(max(0, names.count - 2 * Self.setAsideMax)) {
            try DurableFile.remove(setAsideFolder.appendingPathComponent(name))
        }
        return target
    }
}
