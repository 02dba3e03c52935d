{{/*
SPDX-License-Identifier: Apache-2.0
Part of Lamplighter.

What the pods of workers and of registrars have in common.
*/}}

{{/* Labels and annotations: `labels` are those of the selector, and `configuration` is a file's text. */}}
{{- define "lamplighter.pod.metadata" -}}
labels:
  {{- .labels | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  checksum/config: {{ .configuration | sha256sum }}
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Who the processes are, and where they run: apart from the others of the `selector`. `values` are the component's. */}}
{{- define "lamplighter.pod.settings" -}}
automountServiceAccountToken: false
# Links of a Service named lamplighter-… would be unknown keys: LAMPLIGHTER_….
enableServiceLinks: false
{{- with .root.Values.podSecurityContext }}
# fsGroup lets the process read the Secrets' files, which belong to root.
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
# Nodes and zones are preferences: a pod on a shared node is better than one that waits.
affinity:
  {{- if .values.affinity }}
  {{- tpl (toYaml .values.affinity) .root | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- .selector | nindent 14 }}
  {{- end }}
topologySpreadConstraints:
  - topologyKey: topology.kubernetes.io/zone
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- .selector | nindent 8 }}
{{- end }}

{{- define "lamplighter.pod.containerSecurity" -}}
{{- with .Values.securityContext -}}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "lamplighter.pod.probes" -}}
# Until the registrations have been read.
startupProbe:
  httpGet: {path: /startupz, port: health}
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: {{ div .root.Values.startupSeconds 5 }}
# What fails it, such as a Kafka that is away, is no reason for a restart, but for a rollout to wait.
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: {{ .readinessFailures }}
# A thread that has not turned for 20 s, for half a minute more.
livenessProbe:
  httpGet: {path: /livez, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}
