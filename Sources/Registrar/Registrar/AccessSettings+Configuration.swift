// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
internal import RegistrarAccess

extension Configuration.Registrar.Auth {
    var settings: AccessSettings {
        var settings = AccessSettings(serviceKeysFile: serviceKeysFile)
        let keys =
            jwt.jwksFile.map(AccessSettings.JWT.Keys.file)
            ?? jwt.jwksURL.map(AccessSettings.JWT.Keys.url)
        if let keys, let issuer = jwt.issuer, let audience = jwt.audience {
            var own = AccessSettings.JWT(keys: keys, issuer: issuer, audience: audience)
            own.installationClaim = jwt.installationClaim
            own.appClaim = jwt.appClaim
            own.subjectPrefixesClaim = jwt.subjectPrefixesClaim
            own.requiresSubjectPrefixes = jwt.requiresSubjectPrefixes
            own.refreshInterval = jwt.refreshInterval
            own.caFile = jwt.caFile
            settings.jwt = own
        }
        if let rootFile = appAttest.rootFile, let secretFile = appAttest.secretFile {
            settings.appAttest = AccessSettings.AppAttest(
                rootFile: rootFile, secretFile: secretFile, teamIDs: appAttest.teamIDs)
        }
        return settings
    }
}
