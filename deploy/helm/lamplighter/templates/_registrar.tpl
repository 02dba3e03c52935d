{{/*
SPDX-License-Identifier: Apache-2.0
Part of Lamplighter.

Names and configuration of the registrars. Their app.kubernetes.io/name is another than the workers': what
selects workers by it, such as their Deployment, whose selector cannot be changed, selects no registrar.
*/}}

{{/* At most 52 characters: a StatefulSet adds eleven for its revisions, of 63. */}}
{{- define "lamplighter.registrar.fullname" -}}
{{ include "lamplighter.fullname" . | trunc 42 | trimSuffix "-" }}-registrar
{{- end }}

{{- define "lamplighter.registrar.serviceAccountName" -}}
{{- with .Values.registrar.serviceAccount -}}
{{ .name | default (.create | ternary (include "lamplighter.registrar.fullname" $) "default") }}
{{- end -}}
{{- end }}

{{- define "lamplighter.registrar.selector" -}}
app.kubernetes.io/name: {{ include "lamplighter.name" . }}-registrar
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end }}

{{- define "lamplighter.registrar.labels" -}}
{{ include "lamplighter.registrar.selector" . }}
app.kubernetes.io/component: registrar
{{- end }}

{{- define "lamplighter.registrar.metadata" -}}
name: {{ include "lamplighter.registrar.fullname" . }}
labels:
  {{- include "lamplighter.registrar.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* The consumer group, for the rights on it. */}}
{{- define "lamplighter.registrar.group" -}}
{{ .Values.registrar.config.registrar.group | default (printf "%s-registrar" (.Values.config.kafka.group | default "lamplighter")) }}
{{- end }}

{{/* The workers' kafka and log without what is theirs alone, the certificate, and over them registrar.config. */}}
{{- define "lamplighter.registrar.configuration" -}}
{{- $kafka := omit .Values.config.kafka "events" "eventTests" "groupInstanceID" "schemaRegistry" "skip" "startFrom" -}}
{{- $config := merge (dict "kafka" $kafka) (pick .Values.config "log") -}}
{{- if .Values.registrar.tls.secretName -}}
{{- $tls := dict "certificateFile" "/secrets/registrar-tls/tls.crt" "keyFile" "/secrets/registrar-tls/tls.key" -}}
{{- $_ := set $config "registrar" (dict "tls" $tls) -}}
{{- end -}}
# The keys are described in docs/configuration.md.
{{ toYaml (mergeOverwrite (deepCopy $config) (deepCopy .Values.registrar.config)) }}
{{- end }}

{{- define "lamplighter.registrar.scheme" -}}
{{ empty .Values.registrar.tls.secretName | ternary "http" "https" }}
{{- end }}

{{/* The host under which the other replicas reach a pod; Kubernetes replaces its variables. With TLS it is a
name that a certificate can have, which only a StatefulSet gives its pods. */}}
{{- define "lamplighter.registrar.advertisedHost" -}}
{{- if .Values.registrar.advertisedHost -}}
{{ .Values.registrar.advertisedHost }}
{{- else if .Values.registrar.tls.secretName -}}
$(POD_NAME).{{ include "lamplighter.registrar.fullname" . }}-pods.$(POD_NAMESPACE).svc
{{- else -}}
$(POD_IP)
{{- end -}}
{{- end }}

{{- define "lamplighter.registrar.pod" -}}
{{- $registrar := .Values.registrar.config.registrar -}}
{{- $host := include "lamplighter.registrar.advertisedHost" . -}}
metadata:
  {{- include "lamplighter.pod.metadata" (dict "root" . "labels" (include "lamplighter.registrar.labels" .) "configuration" (include "lamplighter.registrar.configuration" .)) | nindent 2 }}
spec:
  serviceAccountName: {{ include "lamplighter.registrar.serviceAccountName" . }}
  {{- include "lamplighter.pod.settings" (dict "root" . "values" .Values.registrar "selector" (include "lamplighter.registrar.selector" .)) | nindent 2 }}
  # The time of preStop, up to 10 s for the writes under way and 5 s to leave the group, and ten more.
  terminationGracePeriodSeconds: {{ .Values.registrar.terminationGracePeriodSeconds }}
  # No init container `check`: that is for workers. A registrar waits for Kafka and its topic by itself, and
  # is not ready until then.
  containers:
    - name: registrar
      image: {{ include "lamplighter.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [registrar, --config, /etc/lamplighter/registrar.yaml]
      {{- if or .Values.registrar.env $registrar.peerTokenFile }}
      env:
        {{- if $registrar.peerTokenFile }}
        {{- range $name, $path := dict "POD_IP" "status.podIP" "POD_NAME" "metadata.name" "POD_NAMESPACE" "metadata.namespace" }}
        {{- if contains (printf "$(%s)" $name) $host }}
        - name: {{ $name }}
          valueFrom:
            fieldRef:
              fieldPath: {{ $path }}
        {{- end }}
        {{- end }}
        # registrar.advertisedURL: where the other replicas reach this one.
        - name: LAMPLIGHTER_REGISTRAR_ADVERTISEDURL
          value: {{ printf "%s://%s:%v" (include "lamplighter.registrar.scheme" .) $host $registrar.port | quote }}
        {{- end }}
        {{- with .Values.registrar.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- with .Values.registrar.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: registrations
          containerPort: {{ required "registrar.config.registrar.port is empty" $registrar.port }}
        - name: health
          containerPort: {{ .Values.registrar.config.health.port }}
      # The readiness probe allows half a minute: a rebalance takes the partitions from all replicas for a moment, and
      # that must not leave the Service without a pod. Requests wait meanwhile, or are told to come again.
      {{- include "lamplighter.pod.probes" (dict "root" . "readinessFailures" 6) | nindent 6 }}
      {{- with .Values.registrar.lifecycle }}
      # preStop waits until everybody knows that the pod has left the Service: from SIGTERM on it answers 503.
      lifecycle:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml .Values.registrar.resources | nindent 8 }}
      {{- include "lamplighter.pod.containerSecurity" . | nindent 6 }}
      volumeMounts:
        - {name: config, mountPath: /etc/lamplighter, readOnly: true}
        {{- if .Values.registrar.keysSecret }}
        - {name: registrar-keys, mountPath: /secrets/registrar, readOnly: true}
        {{- end }}
        {{- if .Values.registrar.tls.secretName }}
        - {name: registrar-tls, mountPath: /secrets/registrar-tls, readOnly: true}
        {{- end }}
        {{- with .Values.registrar.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .Values.registrar.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "lamplighter.registrar.fullname" . }}
    {{- with .Values.registrar.keysSecret }}
    - name: registrar-keys
      secret:
        secretName: {{ . }}
        # 0400. Because of fsGroup the kubelet makes it 0440, with the registrar's group.
        defaultMode: 256
    {{- end }}
    {{- with .Values.registrar.tls.secretName }}
    - name: registrar-tls
      secret:
        secretName: {{ . }}
        defaultMode: 256
    {{- end }}
    {{- with .Values.registrar.volumes }}
    {{- tpl (toYaml .) $ | nindent 4 }}
    {{- end }}
{{- end }}
