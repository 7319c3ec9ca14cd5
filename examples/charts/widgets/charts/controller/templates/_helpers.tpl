{{/* Labels that select; they never change. */}}
{{- define "controller.selectorLabels" -}}
app.kubernetes.io/name: widgets-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "controller.labels" -}}
{{ include "controller.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}
