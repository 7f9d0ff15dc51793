{{/* The labels that select the pods of the daemon. */}}
{{- define "tollgate.labels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}

{{- define "ratelimit.labels" -}}
app.kubernetes.io/name: {{ .Values.ratelimit.name }}
{{- end }}

{{/* An image of the values `image`, with the digest or the tag. */}}
{{- define "tollgate.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .version }}
{{- end }}
{{- end }}

{{/* Resources, and the security of a container. */}}
{{- define "tollgate.container" -}}
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: ["ALL"] }
{{- end }}

{{/* Startup and liveness. */}}
{{- define "tollgate.probes" -}}
startupProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: 1
  failureThreshold: 30
livenessProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: 10
  timeoutSeconds: 2
{{- end }}

{{/* Where pods run. */}}
{{- define "tollgate.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The rules of a NetworkPolicy for egress, and for ingress from monitoring. */}}
{{- define "tollgate.monitoring-ingress" -}}
- from:
    - namespaceSelector:
        matchLabels: { kubernetes.io/metadata.name: {{ .Values.networkPolicy.monitoringNamespace }} }
{{- end }}

{{- define "tollgate.egress" -}}
- to:
    - namespaceSelector: {}
      podSelector:
        matchLabels: { k8s-app: kube-dns }
  ports:
    - { protocol: UDP, port: 53 }
    - { protocol: TCP, port: 53 }
- to:
    - podSelector:
        matchLabels: {{- toYaml .Values.networkPolicy.store.podLabels | nindent 10 }}
  ports:
    - { protocol: TCP, port: {{ .Values.networkPolicy.store.port }} }
{{- end }}
