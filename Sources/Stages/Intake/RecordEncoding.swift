// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Values of the verdicts topic. Keys are `RecordKey.token`.
package enum VerdictEncoder {
    package static func value(_ verdict: Verdict) -> [UInt8] {
        JSONWriter.object { json in
            json.member("v", RecordLimits.version)
            json.member("status", verdict.status)
            json.member("reason", verdict.reason)
            json.member("apnsTimestamp", verdict.apnsTimestamp)
            json.member("registeredAt", verdict.registeredAt)
        }
    }
}

/// An event as a person or a program wants to emit it. What is nil or empty is left out.
package struct EventDraft: Sendable {
    package var id: String?
    package var subject: String?
    package var time: WallTime?
    package var app: String?
    package var environment: PushEnvironment?
    package var kinds: [String] = []
    package var classes: [TokenClass] = []
    package var ttlSeconds: Int64?
    package var expiresAt: WallTime?
    package var priority: UInt8?
    package var collapseID: String?
    /// `none` or `deadline`.
    package var expiration: ExpirationRule?
    /// JSON as it is. Decode the encoded event before sending it: that checks this and all bounds.
    package var payload: [UInt8]?
    /// Only workers write it.
    package var shard: EventShard?

    package init() {}

    /// All that an event says but for its subject and delay: the one need not be text, the other is
    /// its binding's.
    package init(_ event: Event, app: String) {
        time = event.time
        self.app = app
        environment = event.environment
        kinds = event.kinds
        classes = event.classes == .all ? [] : TokenClass.allCases.filter(event.classes.contains)
        expiresAt = event.expiresAt
        priority = event.priority
        collapseID = event.collapseID
        expiration = event.expiration
        payload = event.payload?.body
        shard = event.shard
    }
}

/// Values of events topics.
package enum EventEncoder {
    package static func value(_ event: EventDraft) -> [UInt8] {
        JSONWriter.object { json in
            json.member("v", RecordLimits.version)
            json.member("id", event.id)
            json.member("subject", event.subject)
            json.member("time", event.time)
            json.member("app", event.app)
            json.member("environment", event.environment?.name)
            json.member("kinds", array: event.kinds)
            json.member("classes", array: event.classes.map(\.name))
            json.member("ttlSeconds", event.ttlSeconds)
            json.member("expiresAt", event.expiresAt)
            json.member("priority", event.priority)
            json.member("collapseID", event.collapseID)
            json.member("apnsExpiration", event.expiration.map { String(describing: $0) })
            json.member("payload", raw: event.payload)
            if let shard = event.shard { write(shard, to: &json) }
        }
    }

    private static func write(_ shard: EventShard, to json: inout JSONWriter) {
        json.name("shard")
        json.object { json in
            json.member("index", shard.tokens.index)
            json.member("of", shard.tokens.count)
            json.member("topic", shard.topic)
            json.member("partition", shard.partition)
            json.member("offset", shard.offset)
            json.member("notBefore", shard.notBefore)
        }
    }
}

/// A snapshot as the registrar and the command line write it.
package struct RegistrationDraft: Sendable {
    package struct Show: Sendable {
        package var kind: String?
        package var subjects: [String]

        package init(kind: String?, subjects: [String]) {
            self.kind = kind
            self.subjects = subjects
        }
    }

    package struct Target: Sendable {
        package var tokenClass: TokenClass
        /// Bytes, not hexadecimal; nil for a control that has none yet.
        package var token: [UInt8]?
        /// For a device: a plain event sends it a background push.
        package var hearsChanges = false
        package var shows: [Show]

        package init(tokenClass: TokenClass, token: [UInt8]?, shows: [Show]) {
            self.tokenClass = tokenClass
            self.token = token
            self.shows = shows
        }
    }

    package var environment: PushEnvironment
    package var app: String
    package var installation: String
    package var handler: String
    package var sequence: Int64?
    package var registeredAt: WallTime?
    package var targets: [Target] = []

    package init(
        environment: PushEnvironment, app: String, installation: String, handler: String
    ) {
        self.environment = environment
        self.app = app
        self.installation = installation
        self.handler = handler
    }
}

/// Records of the registrations topic.
package enum RegistrationEncoder {
    package static func key(_ registration: RegistrationDraft) -> [UInt8] {
        RecordKey.registration(
            environment: registration.environment, app: registration.app,
            installation: registration.installation, handler: registration.handler)
    }

    package static func value(_ registration: RegistrationDraft) -> [UInt8] {
        JSONWriter.object { json in
            json.member("v", RecordLimits.version)
            json.member("environment", registration.environment.name)
            json.member("app", registration.app)
            json.member("installation", registration.installation)
            json.member("handler", registration.handler)
            json.member("sequence", registration.sequence)
            json.member("registeredAt", registration.registeredAt)
            json.name("targets")
            json.array { array in
                for target in registration.targets { write(target, to: &array) }
            }
        }
    }

    private static func write(_ target: RegistrationDraft.Target, to json: inout JSONWriter) {
        json.object { json in
            json.member("class", target.tokenClass.name)
            json.member("token", target.token.map { Hexadecimal.encode($0) })
            json.member("onChange", target.hearsChanges ? "background" : nil)
            json.name("shows")
            json.array { array in
                for show in target.shows {
                    array.object { json in
                        json.member("kind", show.kind)
                        json.member("subjects", array: show.subjects)
                    }
                }
            }
        }
    }
}
