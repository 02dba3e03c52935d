{{/* The pod, which Deployment and StatefulSet share. */}}
{{- define "lamplighter.pod" -}}
metadata:
  labels:
    {{- include "lamplighter.selector" . | nindent 4 }}
    app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "lamplighter.configuration" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "lamplighter.fullname" . }}
  automountServiceAccountToken: false
  # Links of a Service named lamplighter-… would be unknown keys: LAMPLIGHTER_….
  enableServiceLinks: false
  # Longer than delivery.shutdownTimeout: a worker that is killed leaves events to be sent again.
  terminationGracePeriodSeconds: {{ add 10 (include "lamplighter.seconds" (.Values.config.delivery.shutdownTimeout | default "25s")) }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    # Lets the worker read the Secrets' files, which belong to root.
    fsGroup: 10001
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  # Nodes and zones are preferences: a worker on a shared node is better than one that waits.
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "lamplighter.selector" . | nindent 16 }}
  topologySpreadConstraints:
    - topologyKey: topology.kubernetes.io/zone
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "lamplighter.selector" . | nindent 10 }}
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
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
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
        # kafka.groupInstanceID: the pod's name, which a StatefulSet gives again after a restart.
        - name: LAMPLIGHTER_KAFKA_GROUPINSTANCEID
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      ports:
        - name: health
          containerPort: {{ .Values.config.health.port }}
      # Until the index has been read.
      startupProbe:
        httpGet: {path: /startupz, port: health}
        periodSeconds: 5
        timeoutSeconds: 2
        failureThreshold: {{ div .Values.startupSeconds 5 }}
      # Kafka is away, or the index is 30 s behind: no reason for a restart, but for a rollout to wait.
      readinessProbe:
        httpGet: {path: /readyz, port: health}
        periodSeconds: 5
        timeoutSeconds: 2
        failureThreshold: 2
      # A thread that has not turned for 20 s, for half a minute more.
      livenessProbe:
        httpGet: {path: /livez, port: health}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - {name: config, mountPath: /etc/lamplighter, readOnly: true}
        - {name: apns-keys, mountPath: /secrets/apns, readOnly: true}
        - {name: state, mountPath: /var/lib/lamplighter}
        {{- with .Values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
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
    - name: state
      emptyDir:
        sizeLimit: 1Mi
    {{- with .Values.volumes }}
    {{- tpl (toYaml .) $ | nindent 4 }}
    {{- end }}
{{- end }}
