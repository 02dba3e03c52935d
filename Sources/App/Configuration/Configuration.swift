// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The configuration of one worker, read at its start and at each reload. One that `load` or
/// `decode` returns has passed every check in this folder.
package struct Configuration: Sendable {
    package var kafka = Kafka()
    package var intake = Intake()
    package var index = Index()
    package var apns = APNS()
    package var delivery = Delivery()
    package var planning = Planning()
    package var deadLetters = DeadLetters()
    package var health = Health()
    package var admin = Admin()
    package var canary = Canary()
    package var otlp = OTLP()
    package var registrar = Registrar()
    package var log = Log()
    /// What the user should change in the configuration before long, one sentence each.
    package internal(set) var notices: [String] = []

    package struct Intake: Sendable {
        package var allowKindWide = false
        package var allowInstallations = false
        package var recordBytesMax = 1 << 20
        /// The file that notes which record is being read; nil for none.
        package var lastRecordFile: String?
    }

    package struct Index: Sendable {
        package var registrationGrace: Duration = .seconds(2)
        /// The folder of the file with the index; nil for none.
        package var snapshotDirectory: String?
        package var snapshotEvery: Duration = .seconds(600)
    }

    package struct Planning: Sendable {
        package var ttl: Duration = .seconds(24 * 3600)
        package var payloadTTL: Duration = .seconds(3600)
        package var splitAbove = 100_000
        package var spread = Duration.zero
        package var spreadAbove = 1000
        package var fanOutMax: Int?
        package var minimumGap = MinimumGaps([.background: .seconds(1800)])
        package var budget = PushBudgets()
        package var restrictions: [ConfiguredRestriction] = []
        package var wire = WireRules()
    }

    package struct DeadLetters: Sendable {
        package var tokensMax = 500
        package var eventBytesMax = 64 << 10
        package var repeatAfter = Duration.seconds(3600)
    }

    package struct Log: Sendable {
        package var level = Level.info
        package var format = Format.json

        /// The levels of swift-log, under its names.
        package enum Level: String, CaseIterable, Sendable {
            case trace, debug, info, notice, warning, error, critical
        }

        package enum Format: String, CaseIterable, Sendable {
            case json, text
        }
    }
}
