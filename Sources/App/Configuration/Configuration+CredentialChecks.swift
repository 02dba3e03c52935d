// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import PushModel

/// The checks of the credentials: their signing keys, their files, and the routes that they serve.
extension Configuration {
    func checkCredentials(_ reader: inout SettingReader) {
        let path = ["apns", "credentials"]
        guard !apns.credentials.isEmpty else {
            guard reader.isSound(path) else { return }
            return reader.report(
                path, wrong: "is missing",
                remedy: "add a credential with team, keyID, keyFile and apps")
        }
        for (name, credential) in apns.credentials.sorted(by: { $0.key < $1.key }) {
            let path = path + [name]
            checkKey(of: credential, path, &reader)
            if credential.apps.isEmpty, reader.isSound(path + ["apps"]) {
                reader.report(
                    path + ["apps"], wrong: "is empty", remedy: "name at least one app")
            }
            if credential.environments.isEmpty, reader.isSound(path + ["environments"]) {
                reader.report(
                    path + ["environments"], wrong: "is empty",
                    remedy: "name production, development or both")
            }
        }
        checkRoutes(&reader)
    }

    private func checkKey(
        of credential: APNS.Credential, _ path: [String], _ reader: inout SettingReader
    ) {
        let sources =
            [
                ("keyFile", credential.keyFile), ("keyFolder", credential.keyFolder),
                ("providerTokenFile", credential.providerTokenFile),
            ]
            .filter { $0.1 != nil }.map(\.0) + (credential.key == nil ? [] : ["key"])
        let places = [
            "key", "keyFile", "keyFolder", "keyID", "nextKeyFile", "nextKeyID", "providerTokenFile",
        ]
        guard places.allSatisfy({ reader.isSound(path + [$0]) }) else { return }
        if sources.count != 1 {
            let variable = EnvironmentVariables.name(of: path + ["key"])
            let isMissing = sources.isEmpty
            reader.report(
                path + [sources.first ?? "keyFile"],
                wrong: isMissing ? "is missing" : "is set, and so is \(sources[1])",
                remedy: "set one of keyFile, keyFolder, providerTokenFile and \(variable)")
        }
        if sources == ["providerTokenFile"] { return checkNoKey(of: credential, path, &reader) }
        if credential.keyFolder == nil {
            check(credential.keyID, "keyID", of: credential.keyFile, path, &reader)
        }
        if let next = credential.nextKeyFile {
            check(credential.nextKeyID, "nextKeyID", of: next, path, &reader)
            if credential.keyFolder != nil {
                reader.report(
                    path + ["nextKeyFile"], wrong: "is set, and so is keyFolder",
                    remedy: "put the key into the folder")
            }
        } else if credential.nextKeyID != nil {
            reader.report(
                path + ["nextKeyID"], wrong: "is set without nextKeyFile",
                remedy: "name the key's file, or leave it out")
        }
    }

    /// Checks that nothing is said of a key where only its provider tokens are known.
    private func checkNoKey(
        of credential: APNS.Credential, _ path: [String], _ reader: inout SettingReader
    ) {
        for (name, value) in [
            ("keyID", credential.keyID), ("nextKeyFile", credential.nextKeyFile),
            ("nextKeyID", credential.nextKeyID),
        ] where value != nil {
            reader.report(
                path + [name], wrong: "is set, and so is providerTokenFile",
                remedy: "leave it out: each provider token names the key that has signed it")
        }
    }

    /// Checks that a key ID is given, by its key or by the name of the file, and that the two
    /// agree.
    private func check(
        _ keyID: String?, _ key: String, of file: String?, _ path: [String],
        _ reader: inout SettingReader
    ) {
        let named = file.flatMap { APNS.Credential.keyID(inNameOf: $0) }
        if keyID == nil, named == nil {
            reader.report(
                path + [key], wrong: "is missing",
                remedy: "give the 10 characters that Apple shows, or keep the file's name "
                    + "AuthKey_<key ID>.p8")
        } else if let keyID, let named, keyID != named {
            reader.report(
                path + [key], wrong: "is \(keyID), and the file is named for \(named)",
                remedy: "keep the one that Apple shows for this key")
        }
    }

    /// The most pairs of app and environment: routes are numbered in 16 bits.
    private static let routesMax = Int(UInt16.max) / TokenClass.allCases.count

    private func checkRoutes(_ reader: inout SettingReader) {
        let path = ["apns", "credentials"]
        var servedBy: [String: String] = [:]
        for (name, credential) in apns.credentials.sorted(by: { $0.key < $1.key }) {
            for environment in credential.environments {
                for app in credential.apps {
                    let route = "\(app) in \(environment.name)"
                    guard let other = servedBy.updateValue(name, forKey: route) else { continue }
                    reader.report(
                        path + [name, "apps"],
                        wrong: "has \(route), which \(other) signs for too",
                        remedy: "keep it in one of them")
                }
            }
        }
        if servedBy.count > Self.routesMax {
            reader.report(
                path, wrong: "has \(servedBy.count) pairs of app and environment",
                remedy: "at most \(Self.routesMax) fit one worker: run a second fleet")
        }
    }

    func checkFiles(_ reader: inout SettingReader) {
        var files: [(path: [String], file: String?, isSecret: Bool)] = [
            (["apns", "caFile"], apns.caFile, false),
            (["otlp", "caFile"], otlp.caFile, false),
            (["kafka", "schemaRegistry", "caFile"], kafka.schemaRegistry.caFile, false),
            (["otlp", "headersFile"], otlp.headersFile, true),
        ]
        for (name, endpoints) in Configuration.APNS.endpointSets {
            for environment in PushEnvironment.allCases {
                let file = apns[keyPath: endpoints][environment].caFile
                files.append((["apns", name, environment.name, "caFile"], file, false))
            }
        }
        for (name, credential) in apns.credentials.sorted(by: { $0.key < $1.key }) {
            let path = ["apns", "credentials", name]
            files.append((path + ["keyFile"], credential.keyFile, true))
            files.append((path + ["providerTokenFile"], credential.providerTokenFile, true))
            if let next = credential.nextKeyFile, FileManager.default.fileExists(atPath: next) {
                files.append((path + ["nextKeyFile"], next, true))
            }
            checkKeyFolder(credential.keyFolder, path, &reader)
        }
        for (path, file, isSecret) in files {
            guard let file, let complaint = Self.complaint(of: file, isSecret: isSecret) else {
                continue
            }
            reader.report(path, wrong: complaint.wrong, remedy: complaint.remedy)
        }
    }

    private func checkKeyFolder(
        _ folder: String?, _ path: [String], _ reader: inout SettingReader
    ) {
        guard let folder else { return }
        let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
        guard let names else {
            return reader.report(
                path + ["keyFolder"], wrong: "is \(folder), which is no folder that can be read",
                remedy: "name a folder; the path is relative to the configuration file's folder")
        }
        let files = names.filter { APNS.Credential.keyID(inNameOf: $0) != nil }.sorted()
        if files.isEmpty {
            reader.report(
                path + ["keyFolder"], wrong: "is \(folder), which has no file AuthKey_<key ID>.p8",
                remedy: "put the key there, under the name that Apple gave it")
        }
        for file in files {
            guard let complaint = Self.complaint(of: "\(folder)/\(file)", isSecret: true) else {
                continue
            }
            reader.report(path + ["keyFolder"], wrong: complaint.wrong, remedy: complaint.remedy)
        }
    }

    /// What is wrong with a file itself; nil if nothing is. Its content is not checked here.
    static func complaint(of file: String, isSecret: Bool) -> Complaint? {
        let manager = FileManager.default
        var isFolder = false
        guard manager.fileExists(atPath: file, isDirectory: &isFolder), !isFolder else {
            return Complaint(
                wrong: "is \(file), " + (isFolder ? "a folder" : "which does not exist"),
                remedy: "name a file; the path is relative to the configuration file's folder")
        }
        guard manager.isReadableFile(atPath: file) else {
            return Complaint(
                wrong: "is \(file), which this user may not read",
                remedy: "give the worker's user read permission")
        }
        let target = URL(fileURLWithPath: file).resolvingSymlinksInPath().path
        let attributes = try? manager.attributesOfItem(atPath: target)
        // Kubernetes mounts secrets readable for all by default, so only writing is refused.
        if isSecret, let mode = attributes?[.posixPermissions] as? Int, mode & 0o002 != 0 {
            return Complaint(
                wrong: "is \(file), which every user may replace", remedy: "run chmod o-w on it")
        }
        return nil
    }
}
