# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""An API server that knows the kinds of the chart's objects and has a few objects by name, so that Helm can
look them up (`--dry-run=server`). It keeps nothing, and validates nothing."""

import contextlib
import http.server
import json
import pathlib
import tempfile
import threading

# The plural names and kinds of each API; the core's is v1.
KINDS = {
    "v1": {"configmaps": "ConfigMap", "serviceaccounts": "ServiceAccount", "services": "Service"},
    "apps/v1": {"deployments": "Deployment", "statefulsets": "StatefulSet"},
    "networking.k8s.io/v1": {"networkpolicies": "NetworkPolicy"},
    "policy/v1": {"poddisruptionbudgets": "PodDisruptionBudget"},
}


def path_of(api):
    return "/api/v1" if api == "v1" else f"/apis/{api}"


def discovery():
    """What clients ask for to learn which kinds there are, by path."""
    groups = [api for api in KINDS if api != "v1"]
    answers = {
        "/version": {"major": "1", "minor": "33", "gitVersion": "v1.33.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
            {"name": api.split("/")[0], "versions": [{"groupVersion": api, "version": "v1"}],
             "preferredVersion": {"groupVersion": api, "version": "v1"}} for api in groups]},
    }
    for api, kinds in KINDS.items():
        answers[path_of(api)] = {"kind": "APIResourceList", "groupVersion": api, "resources": [
            {"name": plural, "kind": kind, "namespaced": True, "singularName": "", "verbs": ["get"]}
            for plural, kind in kinds.items()]}
    return answers


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.server.answers.get(self.path.partition("?")[0])
        code = 404 if body is None else 200
        body = body or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": code}
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def cluster(*objects):
    """A kubeconfig of a cluster with these objects of apps/v1 in the namespace `default`, each as (plural, name)."""
    answers = discovery()
    for plural, name in objects:
        answers[f"/apis/apps/v1/namespaces/default/{plural}/{name}"] = {
            "kind": KINDS["apps/v1"][plural], "apiVersion": "apps/v1",
            "metadata": {"name": name, "namespace": "default"}}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server, \
            tempfile.TemporaryDirectory(prefix="lamplighter-cluster-") as folder:
        server.answers = answers
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = pathlib.Path(folder) / "config"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "fake", "user": {}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}]}))
        try:
            yield path
        finally:
            server.shutdown()
