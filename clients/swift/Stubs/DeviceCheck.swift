// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

@_exported import FoundationOnApple

// developer.apple.com/documentation/devicecheck/dcappattestservice. The documentation has the methods with
// completion handlers; Swift imports each as async too (SE-0297), which is what stands here.
public class DCAppAttestService {
    public class var shared: DCAppAttestService { fatalError() }
    public var isSupported: Bool { fatalError() }
    public func generateKey() async throws -> String { fatalError() }
    public func attestKey(_ keyId: String, clientDataHash: Data) async throws -> Data {
        fatalError()
    }
    public func generateAssertion(_ keyId: String, clientDataHash: Data) async throws -> Data {
        fatalError()
    }
}
