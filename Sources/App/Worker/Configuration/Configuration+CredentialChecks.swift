// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import PushModel

/// Whether the signing keys, the files and the routes they make fit together.
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
            let keys = (credential.keyFile == nil ? 0 : 1) + (credential.key == nil ? 0 : 1)
            if keys != 1, reader.isSound(path + ["key"]), reader.isSound(path + ["keyFile"]) {
                let variable = EnvironmentVariables.name(of: path + ["key"])
                reader.report(
                    path + ["keyFile"], wrong: keys == 0 ? "is missing" : "is set, and so is key",
                    remedy: "set either keyFile or \(variable)")
            }
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

    /// Lanes are numbered in 16 bits.
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
            (
                ["apns", "endpoints", "production", "caFile"],
                apns.endpoints.production.caFile, false
            ),
            (
                ["apns", "endpoints", "development", "caFile"],
                apns.endpoints.development.caFile, false
            ),
        ]
        for (name, credential) in apns.credentials.sorted(by: { $0.key < $1.key }) {
            files.append((["apns", "credentials", name, "keyFile"], credential.keyFile, true))
        }
        for (path, file, isSecret) in files {
            guard let file, let complaint = Self.complaint(of: file, isSecret: isSecret) else {
                continue
            }
            reader.report(path, wrong: complaint.wrong, remedy: complaint.remedy)
        }
    }

    /// What is in the file is not looked at here.
    private static func complaint(of file: String, isSecret: Bool) -> Complaint? {
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
