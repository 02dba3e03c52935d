# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What somebody might do to deploy/kubernetes, and a part of what must be said of it."""

POD = "base/deployment.yaml"
CONFIG = "shared/lamplighter.yaml"
NETWORK = "shared/networkpolicy.yaml"
SCALED = "overlays/production/scaledobject.yaml"
TOPICS = "overlays/production/kafkatopics.yaml"
USERS = "overlays/production/kafkausers.yaml"
ALERTS = "overlays/production/prometheusrule.yaml"
SET = "overlays/static-membership/statefulset.yaml"
# The folder that is rendered, the file, the text, what stands in its place, and the complaint.
BREAKAGES = [
    ("base", POD, "maxUnavailable: 0", "maxUnavailable: 1", "before others have joined"),
    ("base", POD, "maxSurge: 1", "maxSurge: 3", "two at once"),
    ("base", POD, "minReadySeconds: 15", "minReadySeconds: 0", "still rebalances"),
    ("base", POD, "PeriodSeconds: 35", "PeriodSeconds: 25", "the grace period"),
    ("base", CONFIG, "shutdownTimeout: 25s", "shutdownTimeout: 2m", "the grace period"),
    ("base", POD, "path: /startupz", "path: /readyz", "the startup probe"),
    ("base", POD, "failureThreshold: 120", "failureThreshold: 12", "ten minutes"),
    ("base", CONFIG, "host: 0.0.0.0", "host: 127.0.0.1", "health.host"),
    ("base", CONFIG, "port: 9464", "port: 9466", "at health.port"),
    ("base", CONFIG, "port: 9465", "host: 0.0.0.0", "admin.host"),
    ("base", POD, "runAsUser: 10001", "runAsUser: 0", "as root"),
    ("base", POD, "RuntimeDefault", "Unconfined", "seccomp"),
    ("base", POD, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "rights"),
    ("base", POD, "drop: [ALL]", "drop: []", "rights"),
    ("base", POD, "automountServiceAccountToken: false", "automountServiceAccountToken: true",
     "a token of Kubernetes"),
    ("base", POD, "enableServiceLinks: false", "enableServiceLinks: true", "links of a Service"),
    ("base", POD, "lamplighter:0.1.0", "lamplighter:latest", "no exact version"),
    ("base", POD, "defaultMode: 256", "defaultMode: 420", "not 0400"),
    ("base", POD, "mountPath: /secrets/apns", "mountPath: /keys", "keyFolder"),
    ("base", POD, "name: state, mountPath", "name: stat, mountPath", "no volume stat"),
    ("base", POD, "readinessProbe:", "readyProbe:", "readyProbe"),
    ("base", POD, "periodSeconds: 10", "periodSeconds: ten", "periodSeconds"),
    ("base", "shared/service.yaml", "instance: lamplighter\n  ports", "instance: other\n  ports",
     "Service does not select"),
    ("base", "shared/poddisruptionbudget.yaml", "maxUnavailable: 1", "maxUnavailable: 2",
     "more than one"),
    ("base", NETWORK, "port: 9092", "port: 9094", "Kafka is not reached"),
    ("base", NETWORK, "port: 2197", "port: 2196", "APNs is not reached"),
    ("base", NETWORK, "port: health", "port: 9465", "to another port"),
    ("base", NETWORK, "[Ingress, Egress]", "[Ingress]", "both directions"),
    ("overlays/static-membership", SET, "fieldPath: metadata.name", "fieldPath: metadata.uid",
     "GROUPINSTANCEID"),
    ("overlays/static-membership", SET, "serviceName: lamplighter", "serviceName: other",
     "no such Service"),
    ("overlays/production", SCALED, '"lamplighter.events"', '"lamplighter.deferred"', "scales on"),
    ("overlays/production", SCALED, '        topic: "lamplighter.events"\n', "", "scales on"),
    ("overlays/production", SCALED, "maxReplicaCount: 12", "maxReplicaCount: 13",
     "13 workers for 12 partitions"),
    ("overlays/production", SCALED, "Seconds: 600", "Seconds: 0", "no cool-down"),
    ("overlays/production", SCALED, "pollingInterval", "pollInterval", "pollInterval"),
    ("overlays/production", "overlays/production/deployment-patch.yaml", "replicas: null",
     "replicas: 3", "sets the number of replicas too"),
    ("overlays/production", TOPICS, "LogAppendTime", "CreateTime", "registrations"),
    ("overlays/production", TOPICS, "min.compaction.lag.ms: 3600000", "", "deferred"),
    ("overlays/production", TOPICS, "cleanup.policy: delete", "cleanup.policy: compact",
     "dead-letters"),
    ("overlays/production", TOPICS, "replicas: 3", "replicas: 1", "three replicas"),
    ("overlays/production", USERS, "[Read, DescribeConfigs]", "[DescribeConfigs]", "lacks"),
    ("overlays/production", USERS, "[Write, DescribeConfigs]", "[Write, Delete, DescribeConfigs]",
     "has ('topic', 'lamplighter.dead-letters', 'Delete')"),
    ("overlays/production", USERS, "operations: [Write]", "operations: [All]", "least rights"),
    ("overlays/production", ALERTS, 'runbook_url: "https://git', 'runbook_url: "git', "links to git"),
    ("overlays/production", ALERTS, "md#lamplighterpusheswait", "md#pusheswait", "#pusheswait"),
    ("overlays/production", ALERTS, "annotations:", "annotation:", "'annotation'"),
    ("overlays/production", "overlays/production/servicemonitor.yaml", "port: health",
     "port: metrics", "no port of the Service"),
]
