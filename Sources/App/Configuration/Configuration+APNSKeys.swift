// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel

extension Configuration.APNS {
    static var keys: [ConfigurationKey<Self>] {
        [
            .map(
                "credentials", \.credentials,
                names: NameRule(
                    placeholder: "<name>", notation: "1 to 64 of A-Z a-z 0-9 -",
                    pattern: "[A-Za-z0-9\\-]{1,64}", variableSeparator: "-", countMax: 1000),
                of: Credential(), Credential.keys,
                "The signing keys, each under a name of your choice; at least one."),
            .section(
                "endpoints", \.endpoints, Endpoints.keys,
                "Where to send, if not to Apple's own hosts."),
            .section(
                "broadcastEndpoints", \.broadcastEndpoints, Endpoints.keys,
                "Where to send broadcasts to channels of Live Activities, if not to Apple's own "
                    + "hosts. No connection is opened before the first of them."),
            .section(
                "channelEndpoints", \.channelEndpoints, Endpoints.keys,
                "Where `lamplighter channels` makes, lists and deletes channels, if not at Apple's "
                    + "own hosts."),
            .optional(
                "caFile", \.caFile, .file,
                "PEM file of the roots to trust, instead of the system's."),
            .value(
                "transport", \.transport, .choice,
                "Which HTTP/2 client sends: `auto` takes `curl` when `apns.proxy` is set and the "
                    + "faster `nghttp2` otherwise."),
            .optional(
                "proxy", \.proxy, .proxy,
                "An HTTP proxy to tunnel through (CONNECT, Basic authentication); needs `curl`. "
                    + "TLS begins behind it: `https://` proxies and SOCKS are not supported. "
                    + "Variables such as `https_proxy` and `no_proxy` have no effect."),
            .value(
                "connections", \.connections, .integer(1...100),
                "Connections of each delivery thread for each (environment, team, key), at least."),
            .value(
                "connectionsMax", \.connectionsMax, .integer(1...100),
                "The most such connections (`connections` where that is more). One is added when "
                    + "every stream is taken and answers take no more than twice the shortest "
                    + "seen."),
            .value(
                "streamsMax", \.limits.streamsMax, .integer(1...10_000),
                "Requests at once on one connection, even if the server allows more."),
            AddedPushType.row,
        ] + times
    }

    private static var times: [ConfigurationKey<Self>] {
        [
            .value(
                "connectTimeout", \.limits.connectTimeout,
                .duration(.milliseconds(100) ... .seconds(60)),
                "From the first byte to the server's first SETTINGS frame."),
            .value(
                "requestTimeout", \.limits.requestTimeout,
                .duration(.seconds(1) ... .seconds(120)),
                "From handing over a request to the end of its answer."),
            .value(
                "pingAfterSilence", \.limits.pingAfterSilence,
                .duration(.seconds(1) ... .seconds(3600)),
                "A connection that was silent for so long is asked by PING before it is used."),
            .value(
                "pingWhenIdle", \.limits.pingWhenIdle,
                .duration(.seconds(60) ... .seconds(86_400)),
                "A connection that was silent for so long is asked by PING though nothing is sent."),
            .value(
                "pingTimeout", \.limits.pingTimeout,
                .duration(.milliseconds(100) ... .seconds(60)),
                "A connection that leaves a PING unanswered for so long is replaced."),
            .value(
                "ageMax", \.limits.ageMax,
                .duration(.seconds(60) ... .seconds(7 * 86_400)),
                "A connection is replaced after this time, more or less a tenth."),
            .value(
                "reconnectMin", \.limits.reconnectMin,
                .duration(.milliseconds(10) ... .seconds(60)),
                "The wait after a first failed connect; each further one doubles it, with jitter."),
            .value(
                "reconnectMax", \.limits.reconnectMax,
                .duration(.milliseconds(10) ... .seconds(600)),
                "The longest such wait."),
        ]
    }
}

extension Configuration.APNS.Credential {
    static var keys: [ConfigurationKey<Self>] {
        let tenCharacters = SettingType.text(
            "the 10 capital letters and digits that Apple shows", matching: "[A-Z0-9]{10}")
        let environment = SettingType.choice(
            PushEnvironment.allCases.map { ($0.name, $0) } + [("sandbox", .development)])
        return [
            .required("team", \.team, tenCharacters, "The team's identifier."),
            .optional(
                "keyID", \.keyID, tenCharacters,
                "The key's identifier. Only needed where the file is not named for it, as Apple does: "
                    + "`AuthKey_FGHIJ67890.p8`. With `keyFolder`, the key to begin with."),
            .optional(
                "keyFile", \.keyFile, .file, "The .p8 file of the key, as Apple gave it."),
            .optional(
                "keyFolder", \.keyFolder, .file,
                "Instead of `keyFile`: a folder of files named `AuthKey_<key ID>.p8`, such as a "
                    + "mounted Kubernetes Secret. A new file is tried within seconds; it is used as "
                    + "soon as APNs accepts its key, and the old key until then."),
            .optional(
                "nextKeyFile", \.nextKeyFile, .file,
                "A key that is to take over from `keyFile` or `key`, in the same way; the file need "
                    + "not be there yet."),
            .optional(
                "nextKeyID", \.nextKeyID, tenCharacters,
                "Its identifier, where its file is not named for it."),
            .optional(
                "providerTokenFile", \.providerTokenFile, .file,
                "Instead of a key: a file with a provider token (a JWT) that another service signs and "
                    + "renews, every 45 minutes or so. A new one is tried within seconds, and used as "
                    + "soon as APNs accepts it; one of an hour is not sent."),
            .optional(
                "key", \.key, .variable("the text of a .p8 file"),
                "The text of the .p8 file, where there is no file. Only as an environment "
                    + "variable."),
            .required(
                "apps", \.apps, .list(of: .bundleID, countMax: 1000),
                "Bundle identifiers of the apps that it signs for."),
            .value(
                "environments", \.environments,
                .list(of: environment, countMax: 2),
                "Where it may be used, in the words of the app's `aps-environment` entitlement."),
        ]
    }
}

extension Configuration.APNS.Endpoints {
    static var keys: [ConfigurationKey<Self>] {
        let keys = Configuration.APNS.Endpoint.keys
        return [
            .section("production", \.production, keys, "For released apps."),
            .section("development", \.development, keys, "For builds from Xcode."),
        ]
    }
}

extension Configuration.APNS.Endpoint {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value("host", \.host, .host, "The host to connect to."),
            .value(
                "port", \.port, .integer(1...65_535),
                "Its port; Apple also takes pushes to devices on 2197."),
            .optional(
                "serverName", \.serverName, .host,
                "The name to ask for and to expect in the certificate, if not `host`."),
            .optional("caFile", \.caFile, .file, "Instead of `apns.caFile`."),
        ]
    }
}

extension SettingType where Value == String {
    /// The path of a file. Whether the file exists is checked with the configuration as a whole.
    /// The text of a key in place of a path is refused, so that no message shows it.
    static var file: Self {
        .text("the path of a file", matching: "(?!-----BEGIN)[^\\x00-\\x1F]{1,4096}")
    }

    static var host: Self {
        .text(
            "a host name or an IP address",
            matching: "[A-Za-z0-9._\\-]{1,253}|[0-9A-Fa-f:.]{2,45}")
    }
}

extension SettingType where Value == Secret {
    static var proxy: Self {
        let host = "(?:[A-Za-z0-9._\\-]+|\\[[0-9A-Fa-f:.]+\\]):[0-9]{1,5}"
        return .text(
            "http://host:port, with user:password@ before the host if needed, both percent-encoded",
            matching: "http://(?:(?:[A-Za-z0-9._~!$&'()*+,;=:\\-]|%[0-9A-Fa-f]{2})+@)?\(host)",
            // The user and the password are left out.
            shown: { "http://" + $0.dropFirst("http://".count).split(separator: "@").last! })
    }
}
