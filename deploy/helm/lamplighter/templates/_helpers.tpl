{{/*
SPDX-License-Identifier: Apache-2.0
Part of Lamplighter.
*/}}

{{/* At most 53 characters: the registrars' adds ten, of 63. */}}
{{- define "lamplighter.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 53 | trimSuffix "-" }}
{{- end }}

{{/* At most 52 characters: a StatefulSet adds eleven for its revisions, of 63. */}}
{{- define "lamplighter.fullname" -}}
{{- $name := include "lamplighter.name" . -}}
{{- $fullname := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{ .Values.fullnameOverride | default $fullname | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "lamplighter.serviceAccountName" -}}
{{- with .Values.serviceAccount -}}
{{ .name | default (.create | ternary (include "lamplighter.fullname" $) "default") }}
{{- end -}}
{{- end }}

{{- define "lamplighter.selector" -}}
app.kubernetes.io/name: {{ include "lamplighter.name" . | toYaml }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end }}

{{- define "lamplighter.labels" -}}
{{ include "lamplighter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "lamplighter.metadata" -}}
name: {{ include "lamplighter.fullname" . }}
labels:
  {{- include "lamplighter.labels" . | nindent 2 }}
{{- end }}

{{- define "lamplighter.configuration" -}}
# The keys are described in docs/configuration.md.
{{ toYaml .Values.config }}
{{- end }}

{{/* Seconds of a duration of the configuration, such as 25s or 2m. */}}
{{- define "lamplighter.seconds" -}}
{{- if regexMatch "^[0-9]+s$" . -}}{{ trimSuffix "s" . | int }}
{{- else if regexMatch "^[0-9]+m$" . -}}{{ mul 60 (trimSuffix "m" . | int) }}
{{- else -}}{{ fail (printf "delivery.shutdownTimeout is %s: write it in s or m" .) }}
{{- end -}}
{{- end }}

{{/* The name of one of kafka.topics. */}}
{{- define "lamplighter.topic" -}}
{{- $names := dict "registrations" "lamplighter.registrations" "suppressions" "lamplighter.suppressions" "deferred" "lamplighter.deferred" "deadLetters" "lamplighter.dead-letters" "restrictions" "lamplighter.restrictions" -}}
{{- $kafka := .root.Values.config.kafka -}}
{{ get (merge (dict) ($kafka.topics | default dict) $names) .key }}
{{- end }}

{{/* The events topic to which a worker writes the shards of large audiences; empty if there is none. */}}
{{- define "lamplighter.shards" -}}
{{- $found := "" -}}
{{- range $topic, $binding := .Values.config.kafka.events -}}
{{- $binding = $binding | default dict -}}
{{- if and (not $found) (eq ($binding.decode | default "json") "json") (not $binding.subject) -}}
{{- $found = $topic -}}
{{- end -}}
{{- end -}}
{{ $found }}
{{- end }}

{{/* The most workers that have something to do. */}}
{{- define "lamplighter.maxReplicas" -}}
{{ min (.Values.keda.maxReplicas | default .Values.partitions | int) (int .Values.partitions) }}
{{- end }}

{{/* The image with its digest or its tag. */}}
{{- define "lamplighter.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}
{{- else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}
