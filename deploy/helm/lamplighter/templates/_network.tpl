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

{{- define "lamplighter.network.kafka" -}}
{{- with .Values.networkPolicy -}}
# DNS
- to:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: {{ .dns.namespace }}
  ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
# Kafka
- ports:
    {{- range .kafka.ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- with .kafka.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
