// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import PushModel

extension Configuration {
    /// The text of docs/configuration.md: this introduction and the key table.
    package static var reference: String {
        let body = ([introduction] + shape.map { section($0) } + [kafkaProperties, kafkaTokens])
            .joined(separator: "\n")
        return [head, PageContents.list(of: body), body].joined(separator: "\n\n") + "\n"
    }

    private static let head = """
        <!-- Written by `make docs` from the table in Sources/App/Configuration. -->

        # Configuration

        One YAML file of maps, named by `--config`.
        """

    private static let introduction = """
        A start looks like this:

        ```yaml
        kafka:
          bootstrap: kafka-1:9092,kafka-2:9092
        apns:
          credentials:
            home:
              team: ABCDE12345
              keyID: FGHIJ67890
              keyFile: AuthKey_FGHIJ67890.p8
              apps: [com.example.Home]
        ```

        Everything is checked before anything starts. All problems are reported at once, one line
        each: where, what is wrong, what to do; the exit code is 78. An unknown key is an error.

        **Environment variables.** Each key has one, and it wins over the file: `LAMPLIGHTER_` and
        the path in capitals, joined by `_`. `kafka.bootstrap` is `LAMPLIGHTER_KAFKA_BOOTSTRAP`,
        `apns.credentials.home.keyFile` is `LAMPLIGHTER_APNS_CREDENTIALS_HOME_KEYFILE`. In a name
        of your choice whatever is not a letter or digit becomes `_` too: the topic `app.orders`
        has `LAMPLIGHTER_KAFKA_EVENTS_APP_ORDERS_DECODE`. A name that the file does not have is
        made of the variable's in small letters, `_` becoming `.` in topics and librdkafka
        properties and `-` in credentials: `LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD` sets
        `sasl.password`. Lists are separated by commas. An unknown variable is an error, except
        those that Kubernetes makes for a Service called `lamplighter`.

        **Values.** Durations are a whole number and a unit: `500ms`, `30s`, `10m`, `24h`, `7d`.
        Sizes are bytes, or have a unit: `64KiB`, `1MiB`. Paths of files are relative to the folder
        of the configuration file. An empty value, `~` or `null` is the same as leaving the key out.

        **Secrets** are files or variables and are never printed, at no log level.

        **Variables in the file** are not filled in. A value that is `${NAME}`, `${NAME:-default}`
        or `$(NAME)` and nothing else is an error, which names the variable to set instead. `$NAME`
        is taken as it is, since it may be a password. Templates and conditions are taken as they are, too.

        **Reload.** SIGHUP has a worker read the file again. With any mistake in it nothing changes,
        and each mistake is logged. Otherwise one line names every key that has changed, with its
        old and its new value. Keys marked *live* are in force at once, for pushes and events from
        then on; the line says which other keys wait for a restart. A live key waits too if it does
        not fit the old value of a key that waits. Variables are those that the process was started
        with. Key files need no signal.

        **Other signals.** SIGTERM and SIGINT end a worker in order. SIGUSR1 has it write its
        counters to the log; SIGUSR2 and SIGPIPE are ignored.

        **A new signing key.** Apple never issues a key again under an old key ID, so a new key comes
        beside the old one, and [runbook.md](runbook.md#key-rotation) has the steps. In the folder of
        `keyFolder: /secrets/apns` each file keeps the name that Apple gave it. A worker looks every
        5 s and tries a new key by one push to a token that nobody has. Until APNs accepts it the old
        key stays in use; while it is refused the log says so, and it is tried again. Of several keys
        that are there when a worker starts, it begins with the one that `keyID` names, otherwise
        with the newest file, and turns to another when APNs refuses that one.

        **Provider tokens made elsewhere.** With `providerTokenFile` a worker has no key: another service
        holds the `.p8`, and writes a provider token (a JWT with `alg` ES256, `kid`, `iss` and `iat`)
        into the file every 45 minutes or so, best by renaming a new file over the old one. A worker
        treats it as a new key: it looks every 5 s, tries a token of a later `iat` by one push to a token
        that nobody has, and uses it once APNs accepts it. APNs wants 20 minutes between two tokens and
        refuses one of an hour, so a token stays in use for 20 minutes, whatever comes, unless APNs
        refuses it; `check` and `status` warn of one of 50 minutes, and one of 59 is not sent any more:
        its pushes wait. The file is as secret as a key for that hour.

        **Two senders of one team** share Apple's limit on provider tokens, and a key that one of them
        leaks ends for both. Give each a key of its own; a topic-specific key, which signs only for the
        apps and the environment that Apple was told, keeps them apart for good.
        """

    private static var kafkaProperties: String {
        let rows = KafkaClientSettings.restrictedProperties.map { property in
            let allowed = property.notation ?? "not at all"
            return "| `\(property.property)` | \(allowed) | \(property.reason) |"
        }
        return """

            ## librdkafka properties with limits

            librdkafka allows values with which a worker does not work. Outside of these limits a property of
            `kafka.properties` is refused, under either of its names where it has two, and so is
            whatever librdkafka would refuse when its clients are made.

            | property | may be | otherwise |
            |---|---|---|

            """ + rows.joined(separator: "\n")
    }

    private static let kafkaTokens = """

        ## A Kafka that wants tokens

        With SASL/OAUTHBEARER the tokens come from an OAuth 2.0 token endpoint (client credentials,
        RFC 6749, section 4.4), under the names that librdkafka has for it, also where librdkafka
        was built without OIDC:

        ```yaml
        kafka:
          bootstrap: kafka-1:9093
          properties:
            security.protocol: SASL_SSL
            sasl.mechanisms: OAUTHBEARER
            sasl.oauthbearer.method: oidc
            sasl.oauthbearer.token.endpoint.url: https://id.example.com/realms/kafka/token
            sasl.oauthbearer.client.id: lamplighter
            # LAMPLIGHTER_KAFKA_PROPERTIES_SASL_OAUTHBEARER_CLIENT_SECRET has the secret.
            sasl.oauthbearer.scope: kafka                          # optional
            sasl.oauthbearer.extensions: logicalCluster=lkc-1      # optional
            https.ca.location: /etc/ssl/id-ca.pem                  # optional: the endpoint's CA
        ```

        One token serves all Kafka clients of a worker. Another is requested when four fifths of its
        life are over and, while there is none, again at intervals of 1 s to 60 s. It must be
        a JSON Web Token with a subject (`sub`). The endpoint is `https://`, or `http://` on the
        loopback interface; no proxy is used. `lamplighter check` says what is wrong with it.
        """

    private static func section(_ section: KeyShape) -> String {
        var told: Set<String> = []
        let rows = section.values.map { value in
            let isNew = told.insert(value.summary).inserted
            let cells = [
                "`\(SettingReader.shown(value.path))`" + (value.form.isLive ? " *live*" : ""),
                defaultText(of: value.form),
                value.form.notation, isNew ? value.summary : "as above",
            ]
            return "| " + cells.map(escaped).joined(separator: " | ") + " |"
        }
        let head = [
            "", "## `\(section.name)`", "", section.summary, "",
            "| key | default | value | meaning |", "|---|---|---|---|",
        ]
        return (head + rows).joined(separator: "\n")
    }

    private static func defaultText(of form: KeyShape.ValueForm) -> String {
        if form.isRequired { return "**required**" }
        return form.defaultText.map { "`\($0)`" } ?? "none"
    }

    /// Escapes vertical bars, which would end the table cell.
    private static func escaped(_ text: String) -> String {
        String(text.flatMap { $0 == "|" ? "\\|" : "\($0)" })
    }
}
