{{/*
SPDX-License-Identifier: Apache-2.0
Part of Lamplighter.

The rules that the NetworkPolicies of workers and of registrars have in common.
*/}}

{{- define "lamplighter.network.metrics" -}}
# Metrics. The node's kubelet may always ask.
- from:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: {{ .Values.networkPolicy.monitoringNamespace }}
  ports:
    - {protocol: TCP, port: health}
{{- end }}

{{/* The ports of a list of brokers. Where one names none it is Kafka's. */}}
{{- define "lamplighter.network.ports" -}}
{{- $ports := list -}}
{{- range splitList "," . -}}
{{- $ports = append $ports (regexFind ":[0-9]+$" . | trimPrefix ":" | default "9092" | int) -}}
{{- end -}}
{{ $ports | uniq | toJson }}
{{- end }}

{{/* DNS and Kafka, whose brokers `bootstrap` names. */}}
{{- define "lamplighter.network.kafka" -}}
{{- $ports := .root.Values.networkPolicy.kafka.ports -}}
{{- if not $ports -}}
{{- $bootstrap := required "networkPolicy.kafka.ports is empty, and config.kafka.bootstrap names no broker whose port could stand for it" .bootstrap -}}
{{- $ports = include "lamplighter.network.ports" $bootstrap | fromJsonArray -}}
{{- end -}}
{{- with .root.Values.networkPolicy -}}
# DNS
- to:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: {{ .dns.namespace }}
  ports:
    {{- range .dns.ports }}
    - {protocol: UDP, port: {{ . }}}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
# Kafka
- ports:
    {{- range $ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- with .kafka.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
