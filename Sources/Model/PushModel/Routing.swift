// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// An app's position in the routing table.
@usableFromInline
package struct AppID: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let rawValue: UInt16
    // Inlinable, like clocks, identifiers and the slab: together that saved 700 of 6,733
    // instructions per push.
    @inlinable package init(rawValue: UInt16) { self.rawValue = rawValue }
}

/// A position in `RoutingTable.routes`.
@usableFromInline
package struct RouteID: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let rawValue: UInt16
    @inlinable package init(rawValue: UInt16) { self.rawValue = rawValue }
}

/// A position in `RoutingTable.pools`.
@usableFromInline
package struct PoolID: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let rawValue: UInt16
    @inlinable package init(rawValue: UInt16) { self.rawValue = rawValue }
}

/// One environment and APNs topic: the unit of queues and of the guard on 400 answers. A class of
/// token fixes the suffix of its topic, so (environment, app, class) names a route too.
package struct Route: Sendable {
    package let environment: PushEnvironment
    package let app: AppID
    package let tokenClass: TokenClass
    package let apnsTopic: String
    package let pool: PoolID

    /// The path of a broadcast to a channel of the app; nil for a route of devices. It names the app
    /// without a suffix.
    package func broadcastPath(in routing: RoutingTable) -> String? {
        tokenClass == .channel ? "/4/broadcasts/apps/\(routing.name(of: app))" : nil
    }
}

/// One environment, team, key and service of APNs: the unit of connections and of credential
/// breakers.
package struct Pool: Sendable {
    package let environment: PushEnvironment
    /// The name of the credential in the configuration.
    package let credential: String
    /// Whether it carries broadcasts to channels, which have a host of their own, and not pushes to
    /// devices.
    package let isForBroadcasts: Bool

    package init(environment: PushEnvironment, credential: String, isForBroadcasts: Bool) {
        self.environment = environment
        self.credential = credential
        self.isForBroadcasts = isForBroadcasts
    }

    /// The name of its circuit breaker, for people.
    package var breakerName: String {
        Self.breakerName(credential, in: environment.name, for: service)
    }

    package static func breakerName(
        _ credential: String, in environment: String, for service: String?
    ) -> String {
        "credential \(credential) in \(environment)" + (service.map { " for \($0)" } ?? "")
    }

    /// The word for what it carries, where that is not pushes to devices.
    package var service: String? { isForBroadcasts ? "broadcasts" : nil }
}

/// Maps pushes to routes and pools; fixed at start. It has a route for every app of every
/// credential, in every environment that the credential serves, and for every class of token.
package struct RoutingTable: Sendable {
    package private(set) var apps: [String] = []
    package private(set) var routes: [Route] = []
    package private(set) var pools: [Pool] = []
    private var routesByKey: [RouteKey: RouteID] = [:]
    private var appsByName: [String: AppID] = [:]

    private struct RouteKey: Hashable {
        var environment: PushEnvironment
        var app: AppID
        var tokenClass: TokenClass
    }

    package init() {}

    /// Adds one credential's routes. An (environment, app) may be served by one credential only;
    /// the configuration's validation has made sure of that.
    package mutating func add(
        credential: String, apps names: [String], environments: [PushEnvironment]
    ) {
        precondition(
            pools.count + 2 * environments.count <= Int(UInt16.max),
            "the pools of devices and of channels have numbers of 16 bits")
        let first = pools.count
        for isForBroadcasts in [false, true] {
            pools += environments.map {
                Pool(environment: $0, credential: credential, isForBroadcasts: isForBroadcasts)
            }
        }
        for (number, environment) in environments.enumerated() {
            let pool = PoolID(rawValue: UInt16(first + number))
            let broadcasts = PoolID(rawValue: UInt16(first + environments.count + number))
            for name in names {
                let app = intern(app: name)
                for tokenClass in TokenClass.allCases {
                    add(
                        environment: environment, app: app, tokenClass: tokenClass,
                        pool: tokenClass == .channel ? broadcasts : pool)
                }
            }
        }
    }

    package func app(named name: String) -> AppID? { appsByName[name] }

    package func name(of app: AppID) -> String { apps[Int(app.rawValue)] }

    package func route(
        environment: PushEnvironment, app: AppID, tokenClass: TokenClass
    ) -> RouteID? {
        routesByKey[RouteKey(environment: environment, app: app, tokenClass: tokenClass)]
    }

    package subscript(route: RouteID) -> Route { routes[Int(route.rawValue)] }
    package subscript(pool: PoolID) -> Pool { pools[Int(pool.rawValue)] }

    /// The route with this environment and APNs topic, as the keys of suppressions name it.
    package func route(environment: PushEnvironment, apnsTopic: String) -> RouteID? {
        routes.firstIndex { $0.environment == environment && $0.apnsTopic == apnsTopic }
            .map { RouteID(rawValue: UInt16($0)) }
    }

    private mutating func intern(app name: String) -> AppID {
        if let known = appsByName[name] { return known }
        precondition(apps.count < Int(Int16.max), "the apps have numbers of 15 bits")
        let app = AppID(rawValue: UInt16(apps.count))
        apps.append(name)
        appsByName[name] = app
        return app
    }

    private mutating func add(
        environment: PushEnvironment, app: AppID, tokenClass: TokenClass, pool: PoolID
    ) {
        let key = RouteKey(environment: environment, app: app, tokenClass: tokenClass)
        guard routesByKey[key] == nil else { return }
        precondition(routes.count < Int(UInt16.max), "the routes have numbers of 16 bits")
        routesByKey[key] = RouteID(rawValue: UInt16(routes.count))
        routes.append(
            Route(
                environment: environment, app: app, tokenClass: tokenClass,
                apnsTopic: name(of: app) + tokenClass.topicSuffix, pool: pool))
        assert(
            pools[Int(pool.rawValue)].environment == environment,
            "a route goes to a pool of its own environment")
        assert(
            pools[Int(pool.rawValue)].isForBroadcasts == (tokenClass == .channel),
            "a channel's route goes to a pool for broadcasts, any other to one for devices")
    }
}
