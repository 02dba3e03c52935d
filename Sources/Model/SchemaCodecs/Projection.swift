// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Simdjson

/// What is wanted of a value: the places that JSON pointers name. The rest is passed over, which costs
/// a fraction of writing it.
///
/// What is written holds all that the pointers find in the whole document, and may hold more: of an
/// array the items up to the last one that is named, each with all that is wanted of any of them.
package struct Projection: Sendable, Hashable {
    /// A place in the tree of pointers.
    struct Place: Hashable {
        let index: Int

        /// All of the value.
        static let all = Place(index: -1)
        static let root = Place(index: 0)
    }

    private struct Node: Sendable, Hashable {
        /// Sorted by their names.
        var children: [Child] = []
        /// Whether a pointer ends here, so that all of the value is wanted.
        var isWhole = false
    }

    private struct Child: Sendable, Hashable {
        var name: [UInt8]
        var node: Int
    }

    /// The root, then the rest; each node after its parent.
    private var nodes = [Node()]

    /// All of each value.
    package static let whole = Projection(pointers: [""])!

    /// More steps than any configuration has; the memory of programs grows with them.
    package static let stepsMax = 2000

    /// - Parameter pointers: RFC 6901's JSON pointers; the empty one means the whole value.
    /// - Returns: nil if one of them is no pointer, or they have too many steps.
    package init?(pointers: [String]) {
        for pointer in pointers {
            guard let steps = JSONPointer(pointer)?.steps else { return nil }
            var node = 0
            for step in steps { node = child(step, of: node) }
            nodes[node].isWhole = true
            guard nodes.count <= Self.stepsMax else { return nil }
        }
    }

    private mutating func child(_ name: [UInt8], of node: Int) -> Int {
        if let found = nodes[node].children.first(where: { $0.name == name }) { return found.node }
        nodes.append(Node())
        nodes[node].children.append(Child(name: name, node: nodes.count - 1))
        return nodes.count - 1
    }

    // MARK: What is wanted of what is in a value

    /// - Returns: nil if nothing is wanted of this field.
    func field(_ name: [UInt8], of place: Place) -> Place? {
        guard place != .all, !nodes[place.index].isWhole else { return .all }
        return nodes[place.index].children.first { $0.name == name }.map { made(of: $0.node) }
    }

    /// Whether all of the value is wanted.
    func isWhole(_ place: Place) -> Bool { place == .all || nodes[place.index].isWhole }

    private func made(of node: Int) -> Place {
        nodes[node].isWhole ? .all : Place(index: node)
    }

    /// The names that are wanted of a map's keys; nil for all of them.
    func keys(of place: Place) -> [[UInt8]]? {
        isWhole(place) ? nil : nodes[place.index].children.map(\.name)
    }

    /// How many of an array's items are wanted; nil for all of them.
    func itemsMax(of place: Place) -> Int? {
        guard !isWhole(place) else { return nil }
        let positions = nodes[place.index].children.compactMap { child in
            child.name.withUnsafeBytes { JSONPointer.arrayIndex($0) }
        }
        return positions.max().map { $0 + 1 } ?? 0
    }

    /// What is wanted of any of the items of an array, or of the values of a map.
    ///
    /// - Returns: a place of its own where the pointers differ, which is why projections grow while
    ///   a schema is compiled.
    mutating func anyChild(of place: Place) -> Place {
        guard !isWhole(place) else { return .all }
        let children = nodes[place.index].children.map(\.node)
        guard let first = children.first else { return place }
        guard children.count > 1 else { return made(of: first) }
        if let known = merged[children] { return made(of: known) }
        nodes.append(Node())
        let union = nodes.count - 1
        for child in children { merge(child, into: union) }
        merged[children] = union
        return made(of: union)
    }

    /// The places that were made of several, so that each is made once.
    private var merged: [[Int]: Int] = [:]

    private mutating func merge(_ node: Int, into union: Int) {
        if nodes[node].isWhole { nodes[union].isWhole = true }
        for next in nodes[node].children { merge(next.node, into: child(next.name, of: union)) }
    }
}
