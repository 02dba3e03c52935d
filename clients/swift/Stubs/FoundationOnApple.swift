// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// What Foundation has on Apple's systems and not on Linux. On Apple's systems URLSession is a part of it.
@_exported import Foundation
@_exported import FoundationNetworking

extension URLSessionConfiguration {
    // developer.apple.com/documentation/foundation/urlsessionconfiguration/background(withidentifier:)
    public class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        fatalError()
    }
    // …/urlsessionconfiguration/sessionsendslaunchevents
    public var sessionSendsLaunchEvents: Bool {
        get { fatalError() }
        set {}
    }
    // …/urlsessionconfiguration/isdiscretionary
    public var isDiscretionary: Bool {
        get { fatalError() }
        set {}
    }
}

extension FileManager {
    // developer.apple.com/documentation/foundation/filemanager/containerurl(forsecurityapplicationgroupidentifier:)
    public func containerURL(forSecurityApplicationGroupIdentifier groupIdentifier: String) -> URL?
    {
        fatalError()
    }
}
