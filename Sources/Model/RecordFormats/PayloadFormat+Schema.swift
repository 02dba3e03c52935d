// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

// What a payload must have depends on its push type, which other members of a record decide: these
// are conditions on the record as a whole. Sizes are left to the decoder.

extension EventPayload {
    private typealias Schema = [(String, JSONText)]

    /// The conditions on an event's `payload`, `pushType` and `priority`.
    static var eventConditions: [JSONText] {
        let payload = EventField.payload.name
        let (type, priority) = (EventField.pushType.name, EventField.priority.name)
        let hasPayload: Schema = [(payload, [("type", "object")].schema)]
        let untold = JSONText.object([("not", present([(type, isThere)]))])
        var conditions: [JSONText] = [
            // The type is told by `aps`.
            rule(if: [present(hasPayload), untold], then: [(payload, bodies(of: telling))]),
            rule(
                if: [present(hasPayload), untold, present([(priority, constant("10"))])],
                then: [(payload, bodies(of: interruptions + activities))]),
        ]
        for row in PushType.builtIn {
            let named = present([(type, constant("\"\(row.name)\""))])
            if !row.carriesPayload {
                conditions.append(rule(if: [named], then: [(payload, isNothing)]))
            } else if row.emptyBody == nil {
                conditions.append(
                    .object([("if", named), ("then", present([(payload, isThere)]))]))
            }
            if row.name == PushType.background.name {
                conditions.append(
                    rule(if: [named], then: [(priority, other(than: "10"))]))
            }
            guard let dictionary = demands(row.name) else { continue }
            conditions.append(
                rule(if: [named, present(hasPayload)], then: [(payload, bodies(of: dictionary))]))
        }
        let activity = [("payload", bodies(of: activities))]
        conditions.append(
            rule(
                if: [present(hasPayload), untold, present(activity)],
                then: [
                    (payload, bodies(of: [liveActivity])), (priority, other(than: "1")),
                ]))
        conditions.append(
            rule(
                if: [present([(type, constant("\"\(PushType.liveActivity.name)\""))])],
                then: [(priority, other(than: "1"))]))
        return conditions
    }

    /// What `aps` must be one of for a type that is named; nil where Apple leaves it to the app.
    private static func demands(_ type: String) -> [JSONText]? {
        switch type {
        case PushType.alert.name: interruptions
        case PushType.background.name: [background]
        case PushType.liveActivity.name: [liveActivity]
        default: nil
        }
    }

    // MARK: Dictionaries

    /// The dictionaries that tell their push type.
    private static var telling: [JSONText] { interruptions + [background] + activities }

    private static var interruptions: [JSONText] {
        ["alert", "badge", "sound"].map { present([($0, isThere)]) }
    }

    private static var background: JSONText {
        present([("content-available", constant("1"))])
    }

    /// Those of Live Activities.
    private static var activities: [JSONText] {
        let end = ("event", constant("\"\(ActivityChange.Event.end.rawValue)\""))
        return [
            present([("content-state", isThere)]),
            present([end, ("timestamp", [("type", "number")].schema)]),
        ]
    }

    private static var liveActivity: JSONText {
        let common: Schema = [
            (
                "timestamp",
                [("type", "integer"), ("minimum", .literal("1"))].schema
            )
        ]
        let state: Schema = [("content-state", [("type", "object")].schema)]
        func change(_ event: ActivityChange.Event, _ further: Schema) -> JSONText {
            present([("event", constant("\"\(event.rawValue)\""))] + common + further)
        }
        let optional: Schema = ["stale-date", "dismissal-date", "relevance-score"].map {
            ($0, [("type", .array(["number", "null"]))].schema)
        }
        // The end may be without it.
        let nullable: JSONText = [("type", .array(["object", "null"]))].schema
        let start: Schema = [
            ("attributes-type", [("type", "string"), ("minLength", .literal("1"))].schema),
            ("attributes", [("type", "object")].schema), ("alert", isThere),
        ]
        return [
            (
                "anyOf",
                .array([
                    change(.start, state + start), change(.update, state),
                    change(.end, []),
                ])
            ),
            ("properties", .object(optional + [("content-state", nullable)])),
        ].schema
    }

    // MARK: Parts of schemas

    private static var isThere: JSONText { [("not", [("type", "null")].schema)].schema }
    private static var isNothing: JSONText { [("type", "null")].schema }

    private static func constant(_ literal: String) -> JSONText {
        [("const", .literal(literal))].schema
    }

    private static func other(than literal: String) -> JSONText {
        [("not", constant(literal))].schema
    }

    /// An object that has these members, each of which meets its schema.
    private static func present(_ members: Schema) -> JSONText {
        [
            ("required", .array(members.map { .string($0.0) })),
            ("properties", .object(members)),
        ].schema
    }

    /// A payload whose `aps` meets one of these.
    private static func bodies(of dictionaries: [JSONText]) -> JSONText {
        present([("aps", [("type", "object"), ("anyOf", .array(dictionaries))].schema)])
    }

    private static func rule(if conditions: [JSONText], then members: Schema) -> JSONText {
        [
            ("if", [("allOf", .array(conditions))].schema),
            ("then", [("properties", .object(members))].schema),
        ].schema
    }
}

extension [(String, JSONText)] {
    fileprivate var schema: JSONText { .object(self) }
}
