{{/* The pod of a worker, which Deployment and StatefulSet share. */}}
{{- define "lamplighter.pod" -}}
{{- if ne (.Values.config.kafka.groupInstanceID | default "auto") "auto" }}
{{- fail "config.kafka.groupInstanceID is one name, and each pod needs its own: leave it out, staticMembership gives each the pod's" }}
{{- end -}}
metadata:
  {{- include "lamplighter.pod.metadata" (dict "root" . "labels" (include "lamplighter.selector" .) "configuration" (include "lamplighter.configuration" .)) | nindent 2 }}
spec:
  serviceAccountName: {{ include "lamplighter.serviceAccountName" . }}
  {{- include "lamplighter.pod.settings" (dict "root" . "values" .Values "selector" (include "lamplighter.selector" .)) | nindent 2 }}
  # Longer than delivery.shutdownTimeout: a worker that is killed leaves events to be sent again.
  {{- if .Values.terminationGracePeriodSeconds }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- else }}
  terminationGracePeriodSeconds: {{ add 10 (include "lamplighter.seconds" (.Values.config.delivery.shutdownTimeout | default "25s")) }}
  {{- end }}
  {{- if or .Values.initContainers .Values.waitForKafka }}
  initContainers:
    {{- with .Values.initContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if .Values.waitForKafka }}
    # Says in the pod's status and log what is missing: a broker, a topic, a right, or a topic's setting.
    - name: check
      image: {{ include "lamplighter.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [check, --skip-apns, --wait, {{ .Values.waitForKafka }}, --config, /etc/lamplighter/lamplighter.yaml]
      {{- with .Values.env }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      {{- include "lamplighter.pod.containerSecurity" . | nindent 6 }}
      volumeMounts:
        - {name: config, mountPath: /etc/lamplighter, readOnly: true}
        - {name: apns-keys, mountPath: /secrets/apns, readOnly: true}
        {{- with .Values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- end }}
  {{- end }}
  containers:
    - name: worker
      image: {{ include "lamplighter.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [run, --config, /etc/lamplighter/lamplighter.yaml]
      {{- if or .Values.env .Values.staticMembership }}
      env:
        {{- if .Values.staticMembership }}
        # kafka.groupInstanceID: the pod's name, which its successor has too.
        - name: LAMPLIGHTER_KAFKA_GROUPINSTANCEID
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- with .Values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: health
          containerPort: {{ .Values.config.health.port }}
      {{- include "lamplighter.pod.probes" (dict "root" . "readinessFailures" 2) | nindent 6 }}
      {{- with .Values.lifecycle }}
      lifecycle:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      {{- include "lamplighter.pod.containerSecurity" . | nindent 6 }}
      volumeMounts:
        - {name: config, mountPath: /etc/lamplighter, readOnly: true}
        - {name: apns-keys, mountPath: /secrets/apns, readOnly: true}
        - {name: state, mountPath: /var/lib/lamplighter}
        {{- with .Values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "lamplighter.fullname" . }}
    - name: apns-keys
      secret:
        secretName: {{ .Values.keysSecret }}
        # 0400. Because of fsGroup the kubelet makes it 0440, with the worker's group.
        defaultMode: 256
    {{- if not .Values.persistence.enabled }}
    - name: state
      {{- if dig "index" "snapshotDirectory" "" .Values.config }}
      # No limit: a copy of the index grows with the tokens, and a pod above its limit is evicted.
      emptyDir: {}
      {{- else }}
      emptyDir:
        sizeLimit: 1Mi
      {{- end }}
    {{- end }}
    {{- with .Values.volumes }}
    {{- tpl (toYaml .) $ | nindent 4 }}
    {{- end }}
{{- end }}
