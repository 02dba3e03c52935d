// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The routing and the time with which the records of an input are read.
enum RecordWorld {
    static let now = WallTime(rfc3339: "2026-11-21T12:00:00.000Z")!

    /// One app, so that an event may leave it out; in production only.
    static let small: RoutingTable = {
        var routing = RoutingTable()
        routing.add(credential: "main", apps: ["com.example.Home"], environments: [.production])
        return routing
    }()

    static let large: RoutingTable = {
        var routing = small
        routing.add(
            credential: "other", apps: ["com.example.Garden", "a~b"],
            environments: PushEnvironment.allCases)
        return routing
    }()
}
