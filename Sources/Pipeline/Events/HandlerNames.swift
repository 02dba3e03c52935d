// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The names of the handlers that each app's registrations have. The index knows a registration by
/// the hash of its key alone; with the handlers' names all keys of an installation can be tried. An
/// app has a handful of handlers, each a type in its code.
struct HandlerNames {
    struct App {
        var names: [[UInt8]] = []
        /// Whether there was a name for which there was no room.
        var isFull = false
    }

    var apps: [App]

    /// The most names that are kept of one app.
    static let countMax = 64
    private static let slash = UInt8(ascii: "/")

    init(apps: Int) { self.apps = Array(repeating: App(), count: apps) }

    func names(of app: AppID) -> [[UInt8]] { apps[Int(app.rawValue)].names }

    /// Whether the app has had more handlers than are kept.
    func isFull(_ app: AppID) -> Bool { apps[Int(app.rawValue)].isFull }

    /// A registration with this key was read.
    mutating func note(key: [UInt8], of app: AppID) {
        let number = Int(app.rawValue)
        for name in apps[number].names where Self.ends(key, with: name) { return }
        guard let before = key.lastIndex(of: Self.slash) else { return }
        guard apps[number].names.count < Self.countMax else {
            apps[number].isFull = true
            return
        }
        apps[number].names.append(Array(key[(before + 1)...]))
    }

    private static func ends(_ key: [UInt8], with name: [UInt8]) -> Bool {
        let start = key.count - name.count
        guard start > 0, key[start - 1] == slash else { return false }
        for place in name.indices where key[start + place] != name[place] { return false }
        return true
    }
}
