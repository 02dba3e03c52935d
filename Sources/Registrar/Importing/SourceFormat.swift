// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What an input is written in. The vendors' formats are made after their public documents.
package enum SourceFormat: String, CaseIterable, Sendable {
    /// RFC 4180 with a header, as PostgreSQL's `COPY … CSV HEADER` writes it.
    case csv
    /// One JSON object a line.
    case ndjson
    /// PostgreSQL's `COPY … TO` in its text format.
    case copy
    /// The CSV of OneSignal's `players/csv_export`.
    case onesignal
    /// The users that Braze's `users/export` endpoints write, one JSON object a line.
    case braze
    /// Pages of Amazon SNS's `ListEndpointsByPlatformApplication`, as the AWS CLI prints them.
    case sns
    /// Endpoints that an export job of Amazon Pinpoint writes, one JSON object a line.
    case pinpoint

    var isDelimited: Bool { self == .csv || self == .copy || self == .onesignal }

    /// Of these the vendor's names are used unless others are given.
    package var columns: [RowField: String] {
        switch self {
        case .csv, .ndjson, .copy: [:]
        case .onesignal:
            [
                .token: "identifier", .platform: "device_type", .lastSeen: "last_active",
                .optedOut: "invalid_identifier", .subscription: "notification_types",
            ]
        case .braze:
            [
                .token: "push_tokens.token", .platform: "push_tokens.platform",
                .optedOut: "push_subscribe", .optedIn: "push_tokens.notifications_enabled",
                .lastSeen: "apps.last_used",
            ]
        case .sns:
            [
                .token: "/Attributes/Token", .platform: "EndpointArn.platform",
                .environment: "EndpointArn.platform", .tokenClass: "EndpointArn.platform",
                .alive: "/Attributes/Enabled",
            ]
        case .pinpoint:
            [
                .token: "/Address", .platform: "/ChannelType", .environment: "/ChannelType",
                .tokenClass: "/ChannelType", .alive: "/EndpointStatus", .optedOut: "/OptOut",
                .lastSeen: "/EffectiveDate",
            ]
        }
    }

    /// The words of Apple's platform, in lower case; nil where all rows are of it.
    var platforms: Set<String>? {
        switch self {
        case .csv, .ndjson, .copy: nil
        case .onesignal: ["0"]
        case .braze: ["ios"]
        case .sns, .pinpoint: Set(RowMapper.channels.keys)
        }
    }
}

/// What a row says of an installation.
package enum RowField: String, CaseIterable, Sendable {
    case installation, token, environment, app
    case tokenClass = "class"
    /// When the phone was last seen.
    case lastSeen
    case optedOut, optedIn
    /// Whether the sender knows that the token is dead, or alive.
    case dead, alive
    /// A number above 0 of an installation that is subscribed.
    case subscription
    case platform
}
