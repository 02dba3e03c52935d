// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import PushModel

extension Configuration {
    /// Reads the file, overrides its values by the environment's variables, and checks the result.
    ///
    /// - Parameters:
    ///   - file: nil if all values come from the environment.
    ///   - environment: the process's variables, of which those named `LAMPLIGHTER_…` are used.
    /// - Throws: all problems found.
    package static func load(
        file: String?, environment: [String: String], for purpose: Purpose = .worker
    ) throws(InvalidConfiguration) -> Configuration {
        guard let file else {
            definePushTypes(yaml: "", environment: environment)
            return try decode(yaml: "", environment: environment, for: purpose)
        }
        let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
        let yaml = try text(of: file)
        definePushTypes(yaml: yaml, environment: environment)
        return try decode(yaml: yaml, environment: environment, folder: folder, for: purpose)
    }

    /// Reads a configuration from text and variables, and checks it.
    ///
    /// - Parameter folder: the folder that paths in the configuration are relative to; nil for the
    ///   working directory.
    /// - Parameter hostName: what `kafka.groupInstanceID: auto` takes.
    package static func decode(
        yaml: String, environment: [String: String] = [:], folder: String? = nil,
        hostName: String = ProcessInfo.processInfo.hostName, for purpose: Purpose = .worker
    ) throws(InvalidConfiguration) -> Configuration {
        let shape = Self.shape
        var reader = SettingReader(knownPaths: shape.flatMap(\.values).map(\.path))
        var settings: Setting
        do throws(ConfigurationProblem) {
            settings = try Setting(yaml: yaml)
        } catch {
            // Without the file nothing else can be checked.
            throw InvalidConfiguration(problems: [error])
        }
        var notices: [String] = []
        let strays = EnvironmentVariables(root: .section(shape))
            .apply(environment, to: &settings) { name in
                notices.append(
                    "\(name) is of Kubernetes, for a Service of that name, and is ignored: "
                        + "enableServiceLinks: false leaves such variables out")
            }
        for problem in settings.unfilled() { reader.report(problem) }
        var configuration = Configuration()
        configuration.notices = notices
        reader.section(keys, into: &configuration, from: settings)
        for stray in strays { reader.report(stray) }
        if let folder { configuration.resolvePaths(in: folder) }
        configuration.kafka.nameInstance(&reader, hostName: hostName)
        configuration.admin.readToken(&reader)
        configuration.kafka.schemaRegistry.readPassword(&reader)
        configuration.check(&reader, for: purpose)
        guard reader.problems.isEmpty else {
            throw InvalidConfiguration(problems: reader.problems)
        }
        for notice in [configuration.kafka.plaintextNotice, configuration.otlpNotice] {
            if let notice { configuration.notices.append(notice) }
        }
        return configuration
    }

    private static func text(of file: String) throws(InvalidConfiguration) -> String {
        let wrong: String
        do {
            let handle = try Data(contentsOf: URL(fileURLWithPath: file))
            if handle.count > Setting.fileBytesMax {
                wrong =
                    "is larger than \(QuantityNotation.write(Setting.fileBytesMax, in: QuantityNotation.sizes))"
            } else if let text = String(validating: handle, as: UTF8.self) {
                return text
            } else {
                wrong = "is not UTF-8"
            }
        } catch let error as CocoaError {
            switch error.code {
            case .fileReadNoSuchFile: wrong = "does not exist"
            case .fileReadNoPermission: wrong = "may not be read by this user"
            default: wrong = "cannot be read"
            }
        } catch {
            wrong = "cannot be read"
        }
        throw InvalidConfiguration(problems: [
            ConfigurationProblem(
                path: file, origin: nil,
                complaint: Complaint(
                    wrong: "the configuration file \(wrong)",
                    remedy: "name another, or see docs/configuration.md"))
        ])
    }

    mutating func resolvePaths(in folder: String) {
        func resolve(_ path: inout String?) {
            guard let relative = path, !relative.hasPrefix("/") else { return }
            path = folder + "/" + relative
        }
        resolve(&intake.lastRecordFile)
        resolve(&delivery.shadowLog)
        resolve(&index.snapshotDirectory)
        resolve(&admin.tokenFile)
        resolve(&apns.caFile)
        resolve(&otlp.headersFile)
        resolve(&otlp.caFile)
        resolve(&kafka.schemaRegistry.passwordFile)
        resolve(&kafka.schemaRegistry.caFile)
        resolveRegistrarPaths(resolve)
        for endpoints in Configuration.APNS.endpointSets.map(\.path) {
            resolve(&apns[keyPath: endpoints].production.caFile)
            resolve(&apns[keyPath: endpoints].development.caFile)
        }
        for name in apns.credentials.keys {
            resolve(&apns.credentials[name]!.keyFile)
            resolve(&apns.credentials[name]!.keyFolder)
            resolve(&apns.credentials[name]!.nextKeyFile)
            resolve(&apns.credentials[name]!.providerTokenFile)
        }
    }
}

extension Configuration: CustomStringConvertible {
    /// The effective values, one `path: value` per line in the order of the key table. Secrets are
    /// hidden.
    package var description: String {
        effective.map { "\(SettingReader.shown($0.path)): \($0.text)" }
            .joined(separator: "\n")
    }
}
