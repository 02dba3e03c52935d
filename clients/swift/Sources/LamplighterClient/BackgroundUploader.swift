// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

#if canImport(WidgetKit)
    import Foundation
    import LamplighterClientCore
    import Synchronization

    #if canImport(FoundationNetworking)
        // Where check-apple-sources.sh type-checks this file.
        import FoundationNetworking
    #endif

    /// Hands what waits in the outbox to a background URLSession, which goes on when the system has
    /// suspended or ended the process.
    ///
    /// A task's description is the name of the copy that it uploads, and whether its credential is a
    /// renewed one: that is all that a process which is started for the answer needs to know.
    final class BackgroundUploader: NSObject, URLSessionDataDelegate, Sendable {
        static let prefix = "lamplighter."

        private struct State {
            var session: URLSession?
            /// What came of each answer, by the task's identifier.
            var bodies: [Int: Data] = [:]
            var conclusions: [Task<Void, Never>] = []
            var whenDone: (@Sendable () -> Void)?
        }

        let identifier: String
        private let client: RegistrationClient
        private let appGroup: String
        private let state = Mutex(State())
        /// The largest answer that is read, in bytes; a problem has a few hundred.
        private static let bodyMax = 65_536

        init(_ client: RegistrationClient, appGroup: String, identifier: String? = nil) {
            self.client = client
            self.appGroup = appGroup
            // Two processes must not use one identifier.
            let process = Bundle.main.bundleIdentifier ?? "unknown"
            self.identifier = identifier ?? "\(Self.prefix)\(process)"
        }

        /// Takes up a session whose answers have come while no process was there.
        func handleEvents(_ completion: @escaping @Sendable () -> Void) {
            state.withLock { $0.whenDone = completion }
            _ = session()
        }

        private func session() -> URLSession {
            state.withLock { state in
                if let session = state.session { return session }
                let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
                // An extension's background session must name a container that it shares with the app.
                #if canImport(Darwin)
                    configuration.sharedContainerIdentifier = appGroup
                #endif
                configuration.sessionSendsLaunchEvents = true
                configuration.isDiscretionary = false
                // A day: by then the app has probably run, and what waits is registered anew.
                configuration.timeoutIntervalForResource = 86_400
                let session = URLSession(
                    configuration: configuration, delegate: self, delegateQueue: nil)
                state.session = session
                return session
            }
        }

        /// Begins an upload of each snapshot that waits and is not on its way yet, and ends those of
        /// snapshots that have been replaced. Removals are left to the app: a background session only
        /// uploads and downloads.
        func uploadPending() async {
            do {
                try client.outbox.unstageForgotten()
                let installation = try client.installation()
                let pending = try client.outbox.pending(of: installation)
                for url in pending.corrupt { client.report(.corrupt(url)) }
                for snapshot in pending.dropped { client.report(.dropped(snapshot)) }
                var underWay: Set<Snapshot> = []
                for task in await tasks() {
                    guard let snapshot = client.outbox.staged(Self.stagedName(task)) else {
                        continue
                    }
                    if pending.snapshots.contains(snapshot) {
                        underWay.insert(snapshot)
                    } else {
                        task.cancel()
                    }
                }
                for snapshot in pending.snapshots
                where snapshot.content != .removal && !underWay.contains(snapshot) {
                    try await upload(snapshot, after: nil)
                }
            } catch {
                client.report(.unanswered(String(describing: error)))
            }
        }

        private func tasks() async -> [URLSessionTask] {
            await withCheckedContinuation { continuation in
                session().getAllTasks { continuation.resume(returning: $0) }
            }
        }

        private func upload(
            _ snapshot: Snapshot, after refusal: CredentialRefusal?
        ) async throws {
            var request = try snapshot.request(to: client.configuration.registrar)
            let headers = try await client.authorizer.headers(
                for: request, about: snapshot.address, after: refusal)
            request.headers.merge(headers) { _, new in new }
            let file = try client.outbox.stage(snapshot)
            let task = session().uploadTask(
                with: request.urlRequest(timeout: 60, withBody: false), fromFile: file)
            task.taskDescription = file.lastPathComponent + (refusal != nil ? "+renewed" : "")
            task.resume()
        }

        private static func stagedName(_ task: URLSessionTask) -> String {
            String((task.taskDescription ?? "").split(separator: "+").first ?? "")
        }

        // MARK: URLSessionDataDelegate

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)
        {
            state.withLock { state in
                var body = state.bodies[dataTask.taskIdentifier] ?? Data()
                body.append(data.prefix(Self.bodyMax - min(body.count, Self.bodyMax)))
                state.bodies[dataTask.taskIdentifier] = body
            }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            let body =
                state.withLock { $0.bodies.removeValue(forKey: task.taskIdentifier) } ?? Data()
            let name = Self.stagedName(task)
            let renewed = task.taskDescription?.hasSuffix("+renewed") == true
            guard let snapshot = client.outbox.staged(name) else { return }
            try? client.outbox.unstage(name)
            // Cancelled, because a newer snapshot has replaced it.
            if (error as? URLError)?.code == .cancelled { return }
            guard error == nil, let answer = task.response as? HTTPURLResponse else {
                // It waits in the outbox for the app, or for the next call of the handler.
                client.report(.unanswered(error.map { String(describing: $0) } ?? "no answer"))
                return
            }
            let response = Response(answer, body: body)
            let conclusion = Task { await self.conclude(response, snapshot, renewed: renewed) }
            state.withLock { $0.conclusions.append(conclusion) }
        }

        private func conclude(_ response: Response, _ snapshot: Snapshot, renewed: Bool) async {
            do {
                switch try client.conclusion.step(after: response, to: snapshot) {
                case .done: break
                case .again(let raised): try await upload(raised, after: nil)
                case .renewCredential(let refusal) where renewed:
                    client.report(.credentialRefused(refusal.problem))
                case .renewCredential(let refusal): try await upload(snapshot, after: refusal)
                case .later(let seconds):
                    if let seconds {
                        try client.outbox.wait(until: Date().addingTimeInterval(seconds))
                    }
                }
            } catch {
                client.report(.unanswered(String(describing: error)))
            }
        }

        func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
            let (conclusions, whenDone) = state.withLock { state in
                defer {
                    state.conclusions = []
                    state.whenDone = nil
                }
                return (state.conclusions, state.whenDone)
            }
            Task {
                for conclusion in conclusions { await conclusion.value }
                // UIKit wants its completion handler called on the main thread.
                await MainActor.run { whenDone?() }
            }
        }
    }
#endif
