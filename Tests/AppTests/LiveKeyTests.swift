// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import KafkaLog
internal import PushModel
internal import Testing

@testable internal import Configuration
@testable internal import Delivery
@testable internal import Intake
@testable internal import Pipeline
@testable internal import Worker

/// A key that is called live and that nobody adopts would be logged as applied, and ignored.
@Suite struct `A live key` {
    private static let topic = "lamplighter.events"
    private static let app = "com.example.Home"

    /// For each key another value than the default. `log.level` and `log.format`, which are live too, are
    /// adopted by the program.
    private static var values: [String: Any] {
        var values: [String: Any] = [
            "kafka.events.\(topic).app": app, "kafka.events.\(topic).kinds": ["door"],
            "kafka.events.\(topic).classes": ["widget"], "kafka.events.\(topic).ttl": "5m",
            "kafka.skip": ["\(topic)/0/7"], "intake.recordBytesMax": "32KiB",
            "planning.ttl": "2h", "planning.payloadTTL": "30m", "planning.splitAbove": 5000,
            "planning.spread": "90s", "planning.spreadAbove": 400, "planning.fanOutMax": 6000,
            "planning.restrictions": ["pause app=\(app)"],
            "planning.budget.thin": true, "delivery.attemptsMax": 4,
            "delivery.outcomeSample": 0.25,
            "delivery.deferredMax": 3000, "delivery.backoffMin": "2s", "delivery.backoffMax": "30s",
            "delivery.cooldownMin": "4s", "delivery.cooldownMax": "50s",
            "delivery.shutdownTimeout": "40s", "delivery.guard.window": 321,
            "delivery.guard.badShareMax": 0.5, "delivery.guard.suppressionsPerMinuteMax": 77,
            "deadLetters.eventBytesMax": "9KiB", "deadLetters.repeatAfter": "2h",
        ]
        for type in ["controls", "widgets", "background"] {
            values["planning.minimumGap.\(type)"] = "7s"
            values["planning.minimumGap.apps.\(app).\(type)"] = "6s"
            values["planning.budget.\(type)"] = 3
        }
        for type in PushType.builtInTypes {
            values["planning.wire.\(type.name).priority"] = 1
            values["planning.wire.\(type.name).expiration"] = "none"
        }
        return values
    }

    /// The paths of all live keys, with this test's names in place of the placeholders.
    private static var paths: [[String]] {
        Configuration.shape.flatMap(\.values).filter(\.form.isLive).map { value in
            value.path.map { part in
                guard part.hasPrefix("<") else { return part }
                return value.path.starts(with: ["kafka", "events"]) ? topic : app
            }
        }
    }

    /// What every reload starts from: thinning is of no effect without a budget, and an app's own gaps
    /// change only where it has some.
    private static var base: [String: Any] {
        [
            "kafka": ["events": [topic: [String: Any]()]],
            "planning": [
                "budget": ["controls": 2],
                "minimumGap": [
                    "apps": [app: ["controls": "9s", "widgets": "9s", "background": "9s"]]
                ],
            ],
        ]
    }

    private static func setting(
        _ path: ArraySlice<String>, of tree: [String: Any], to value: Any
    ) -> [String: Any] {
        guard let name = path.first else { return tree }
        var tree = tree
        tree[name] =
            path.count == 1
            ? value
            : setting(path.dropFirst(), of: tree[name] as? [String: Any] ?? [:], to: value)
        return tree
    }

    private func configured(_ path: [String], _ value: Any = true) throws -> Configuration {
        let tree = Self.setting(path[...], of: Self.base, to: value)
        let json = try JSONSerialization.data(withJSONObject: tree)
        return try configuration(String(decoding: json, as: UTF8.self))
    }

    /// What a pipeline goes by, wherever it keeps it.
    private func rules(_ plan: WorkerPlan, _ pipeline: borrowing PushPipeline) -> [String] {
        var rules = Self.members(plan.live) + Self.members(plan.pipeline.live)
        rules += Self.members(pipeline.state.settings.live)
        rules += Self.members(pipeline.fanOut.decoder.settings)
        rules.append("\(pipeline.state.budgets.isThinning)")
        for type in PushType.builtInTypes {
            rules.append("\(type.name): \(pipeline.state.budgets.limit(of: type)) a day")
        }
        for route in plan.routing.routes.indices {
            let id = RouteID(rawValue: UInt16(route))
            rules.append("\(route): \(pipeline.state.tokenGaps.gap(of: id, coalescingKey: 0))")
        }
        rules += Self.members(pipeline.state.breakers.tokenBackoff)
        rules += pipeline.state.breakers.pools.flatMap { Self.members($0.breaker.backoff) }
        for route in pipeline.state.breakers.routes {
            rules += Self.members(route.breaker.backoff) + Self.members(route.tokenGuard)
        }
        return rules + pipeline.restrictions.inForce.keys.map { "\($0)" }.sorted()
    }

    private static func members(_ value: Any, _ name: String = "") -> [String] {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .dictionary || mirror.displayStyle == .set {
            // A gap or a budget of zero is none, whether it is said or not.
            return mirror.children.map { members($0.value, name).joined(separator: ", ") }
                .filter {
                    !$0.hasSuffix("value = 0") && !$0.hasSuffix("_low = 0, \(name).value._high = 0")
                }
                .sorted()
        }
        guard !mirror.children.isEmpty else { return ["\(name) = \(value)"] }
        return mirror.children.flatMap { members($0.value, "\(name).\($0.label ?? "")") }
    }

    /// What a worker goes by that was started with a configuration.
    private func started(_ configuration: Configuration) throws -> [String] {
        let plan = WorkerPlan(configuration)
        var pipeline = try PushPipeline(
            routing: plan.routing, bindings: plan.bindings, settings: plan.pipeline,
            slab: PushSlab(slots: plan.pipeline.slots))
        pipeline.advance(now: PlannerLoop.clock())
        return rules(plan, pipeline)
    }

    @Test func `none is missing here, and none is live by mistake`() {
        let names = Self.paths.map { $0.joined(separator: ".") }
        #expect(Set(names) == Set(Self.values.keys).union(["log.level", "log.format"]))
    }

    @Test func `a planner that runs goes by a changed one as if it had been started with it`()
        throws
    {
        let fixture = try PlannerLoopFixture()
        let base = try configured([])
        let before = try started(base)
        for path in Self.paths where path[0] != "log" {
            let name = path.joined(separator: ".")
            let value = try #require(Self.values[name], "no value for \(name)")
            let changed = try configured(path, value)
            fixture.control.adopt(WorkerPlan(base.adopting(changed)))
            fixture.loop.adoptReloadedPlan()
            fixture.loop.pipeline.advance(now: fixture.now)
            let running = rules(fixture.loop.plan, fixture.loop.pipeline)
            #expect(running != before, "\(name) is ignored")
            #expect(try running == started(changed), "\(name)")
            fixture.control.adopt(WorkerPlan(changed.adopting(base)))
            fixture.loop.adoptReloadedPlan()
            fixture.loop.pipeline.advance(now: fixture.now)
            #expect(rules(fixture.loop.plan, fixture.loop.pipeline) == before, "\(name)")
        }
    }

    /// The status says how long a push may wait, by which the diagnosis and an alert judge.
    @Test func `a spread that changes is in the status`() throws {
        let fixture = try PlannerLoopFixture()
        #expect(fixture.loop.status(now: fixture.now).holdMax == .seconds(10))
        let base = try configuration("{}")
        let changed = try configuration("planning: {spread: 5m}")
        fixture.control.adopt(WorkerPlan(base.adopting(changed)))
        fixture.loop.adoptReloadedPlan()
        let status = fixture.loop.status(now: fixture.now)
        #expect(status.holdMax == .seconds(300) && status.promptTypes.isEmpty)
    }
}
