{{/* Name of every object: release name and role, at most 63 characters. */}}
{{- define "wordpress.fullname" -}}
{{- printf "%s-webserver" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels that select; they never change. */}}
{{- define "wordpress.selectorLabels" -}}
app.kubernetes.io/name: wordpress
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "wordpress.labels" -}}
{{ include "wordpress.selectorLabels" . }}
app.kubernetes.io/component: webserver
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Where the database is, and whose Secret has its password. */}}
{{- define "wordpress.databaseHost" -}}
{{- if .Values.mysql.enabled -}}
{{- include "mysql.fullname" .Subcharts.mysql -}}
{{- else -}}
{{- required "set externalDatabase.host, or mysql.enabled to true" .Values.externalDatabase.host -}}
{{- end -}}
{{- end -}}

{{- define "wordpress.databaseSecret" -}}
{{- if .Values.mysql.enabled -}}
{{- include "mysql.secretName" .Subcharts.mysql -}}
{{- else -}}
{{- required "set externalDatabase.existingSecret, or mysql.enabled to true" .Values.externalDatabase.existingSecret -}}
{{- end -}}
{{- end -}}

{{- define "wordpress.databaseName" -}}
{{- ternary .Values.mysql.database .Values.externalDatabase.name .Values.mysql.enabled -}}
{{- end -}}
