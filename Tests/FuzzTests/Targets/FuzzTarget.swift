// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The parts of the product that read untrusted input. Each target reads one input and throws if a
/// promise is broken; a trap is a finding too.
///
/// The fuzzer and the suite run the same targets: one on inputs that it makes up, the other on
/// those that are kept in `Corpus`, in a folder of the target's name.
enum FuzzTarget: String, CaseIterable, Sendable {
    case answers, answerBodies, events, registrations, suppressions, deferred, deadLetters
    case configuration, requests, commands, headers, keys, providerTokens
    case explainQueries, explainBodies, logLevels
    case attestations, accessTokens, accessHeaders, accessFiles
    case registrarPaths, registrarBodies, registrarBatches, registrarAttestBodies
    case registrarLists, registrarQueries, registrarMediaTypes
    case avroSchemas, avroValues, protobufSchemas, protobufValues, schemaFrames, registryAnswers
    case jsonDocuments, imports, indexSnapshots

    /// - Throws: `BrokenPromise`.
    func run(_ input: UnsafeRawBufferPointer) throws {
        switch self {
        case .answers: try AnswersTarget.run(input)
        case .answerBodies: try AnswerBodyPromises.check(input)
        case .events: try EventsTarget.run(input)
        case .registrations: try RegistrationsTarget.run(input)
        case .suppressions: try SuppressionsTarget.run(input)
        case .deferred: try DeferredTarget.run(input)
        case .deadLetters: try DeadLettersTarget.run(input)
        case .configuration: try ConfigurationTarget.run(input)
        case .requests: try RequestsTarget.run(input)
        case .commands: try CommandsTarget.run(input)
        case .headers: try HeadersTarget.run(input)
        case .keys: try KeysTarget.run(input)
        case .providerTokens: try ProviderTokensTarget.run(input)
        case .explainQueries: try ExplainQueriesTarget.run(input)
        case .explainBodies: try ExplainBodiesTarget.run(input)
        case .logLevels: try LogLevelsTarget.run(input)
        case .attestations: try AttestationsTarget.run(input)
        case .accessTokens: try AccessTokensTarget.run(input)
        case .accessHeaders: try AccessHeadersTarget.run(input)
        case .accessFiles: try AccessFilesTarget.run(input)
        case .registrarPaths: try RegistrarPathsTarget.run(input)
        case .registrarBodies: try RegistrarBodiesTarget.run(input)
        case .registrarBatches: try RegistrarBatchesTarget.run(input)
        case .registrarAttestBodies: try RegistrarAttestBodiesTarget.run(input)
        case .registrarLists: try RegistrarListsTarget.run(input)
        case .registrarQueries: try RegistrarQueriesTarget.run(input)
        case .registrarMediaTypes: try RegistrarMediaTypesTarget.run(input)
        case .avroSchemas: try AvroSchemasTarget.run(input)
        case .avroValues: try AvroValuesTarget.run(input)
        case .protobufSchemas: try ProtobufSchemasTarget.run(input)
        case .protobufValues: try ProtobufValuesTarget.run(input)
        case .schemaFrames: try SchemaFramesTarget.run(input)
        case .registryAnswers: try RegistryAnswersTarget.run(input)
        case .jsonDocuments: try JSONDocumentsTarget.run(input)
        case .imports: try ImportsTarget.run(input)
        case .indexSnapshots: try IndexSnapshotsTarget.run(input)
        }
    }
}
