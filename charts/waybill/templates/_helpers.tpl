{{/* Labels of every object. */}}
{{- define "waybill.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: waybill
{{ include "waybill.common" . }}
{{- end }}

{{/* Labels that all our Pods have. */}}
{{- define "waybill.common" -}}
app.kubernetes.io/name: waybill
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "waybill.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end }}

{{/* What Pod Security level restricted asks for, and a little more. */}}
{{- define "waybill.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "waybill.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The whole seconds of a duration like 1m30s. */}}
{{- define "waybill.seconds" -}}
{{- $hours := regexFind "[0-9]+h" . | trimSuffix "h" | int -}}
{{- $minutes := regexFind "[0-9]+m" . | trimSuffix "m" | int -}}
{{- $seconds := regexFind "[0-9]+s" . | trimSuffix "s" | int -}}
{{ add (mul 3600 $hours) (mul 60 $minutes) $seconds }}
{{- end }}

{{/* The bytes of a quantity like 1.5Gi, or of a number. */}}
{{- define "waybill.bytes" -}}
{{- if kindIs "string" . -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{ mulf (regexFind "^[0-9.]+" .) (get $units (regexFind "[A-Za-z]*$" .)) | int64 }}
{{- else -}}
{{ int64 . }}
{{- end -}}
{{- end }}

{{- define "waybill.logArgs" -}}
- --log-level={{ .Values.log.level }}
- --log-encoding={{ .Values.log.encoding }}
{{- end }}

{{/* Where the Pods run. Takes a component's values. */}}
{{- define "waybill.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* Replicas run on several nodes where they can. Takes {root, component}. */}}
{{- define "waybill.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "waybill.common" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* How many Pods may be evicted at a time. Takes {root, component, values}, those of the component. */}}
{{- define "waybill.podDisruptionBudget" }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "waybill.labels" .root | nindent 4 }}
spec:
  maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "waybill.common" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The ServiceAccount of a component. Takes {root, component}. */}}
{{- define "waybill.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "waybill.labels" .root | nindent 4 }}
  {{- with .root.Values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Lets in who reads metrics, for a NetworkPolicy. */}}
{{- define "waybill.metricsIngress" -}}
- ports:
    - {port: metrics}
  {{- with .Values.networkPolicy.metricsFrom }}
  from:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/*
Lets out to everything but metadata services, for a NetworkPolicy. Some network plugins do not count
nodes and Pods among the addresses of a CIDR: hence the selector, and ports at any address.
*/}}
{{- define "waybill.egress" -}}
{{- with .Values.networkPolicy.egress }}
{{- if .enabled -}}
egress:
  - ports:
      - {protocol: UDP, port: 53}
      - {protocol: UDP, port: 5353}
      {{- range .ports }}
      - {protocol: TCP, port: {{ int . }}}
      {{- end }}
  - to:
      - namespaceSelector: {}
      - ipBlock:
          cidr: 0.0.0.0/0
          except: {{ toJson .except }}
      - ipBlock:
          cidr: "::/0"
          except: {{ toJson .exceptIPv6 }}
  {{- with .extra }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "waybill.probes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 5
startupProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 2
  failureThreshold: 60
{{- end }}

{{/*
The programs of waybill-sync, as JSON: one with all roles, or one per role, and one for each namespace that
has a driver of its own. Each is {name, roles, namespace}; name is that of its Deployment and its
ServiceAccount, and namespace the only one that a driver serves.
*/}}
{{- define "waybill.syncs" -}}
{{- $roles := list -}}
{{- range list "hub" "driver" "agent" "data" -}}
{{- if and (index $.Values.roles .) (not (and (eq . "driver") $.Values.sync.driverNamespaces)) }}{{ $roles = append $roles . }}{{ end -}}
{{- end -}}
{{- $syncs := list -}}
{{- if .Values.sync.perRole -}}
{{- range $roles }}{{ $syncs = append $syncs (dict "name" (printf "waybill-%s" .) "roles" (list .)) }}{{ end -}}
{{- else if $roles -}}
{{- $syncs = list (dict "name" "waybill-sync" "roles" $roles) -}}
{{- end -}}
{{- range .Values.sync.driverNamespaces -}}
{{- $syncs = append $syncs (dict "name" (printf "waybill-driver-%s" .) "roles" (list "driver") "namespace" .) -}}
{{- end -}}
{{ dict "syncs" $syncs | toJson }}
{{- end }}

{{/*
The rules of the roles that are generated from the code, in files/rbac/<role>.yaml. Takes {root,
role, accounts}: for each ClusterRole and Role of the file that one, and its binding to the
ServiceAccounts.
*/}}
{{- define "waybill.rbac" -}}
{{- $root := .root -}}
{{- $accounts := .accounts -}}
{{- $path := printf "files/rbac/%s.yaml" .role -}}
{{- $documents := $root.Files.Get $path | required (printf "the chart lacks %s" $path) -}}
{{- range regexSplit "(?m)^---\\s*$" $documents -1 }}
{{- $role := fromYaml . }}
{{- if $role }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $role.kind }}
metadata:
  name: {{ $role.metadata.name }}
  {{- if eq $role.kind "Role" }}
  namespace: {{ $root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "waybill.labels" $root | nindent 4 }}
rules:
  {{- toYaml $role.rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $role.kind }}Binding
metadata:
  name: {{ $role.metadata.name }}
  {{- if eq $role.kind "Role" }}
  namespace: {{ $root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "waybill.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $role.kind }}
  name: {{ $role.metadata.name }}
subjects:
  {{- range $accounts }}
  - kind: ServiceAccount
    name: {{ . }}
    namespace: {{ $root.Release.Namespace }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
A Role or ClusterRole, and its binding to a ServiceAccount of the release. Takes {root, kind, name, account,
rules}, and the namespace of a Role.
*/}}
{{- define "waybill.bound" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "waybill.labels" .root | nindent 4 }}
rules:
  {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "waybill.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/*
What a driver of one namespace may do: the rules that are generated from the code, those for kinds with
namespaces in that namespace alone. Takes {root, name, namespace}.
*/}}
{{- define "waybill.driverRbac" -}}
{{- $in := . -}}
{{- $documents := .root.Files.Get "files/rbac/driver.yaml" | required "the chart lacks files/rbac/driver.yaml" -}}
{{- range regexSplit "(?m)^---\\s*$" $documents -1 }}
{{- $role := fromYaml . }}
{{- if eq ($role.kind | default "") "Role" }}
{{- include "waybill.bound" (dict "root" $in.root "kind" "Role" "name" (printf "%s-system" $in.name) "namespace" $in.root.Release.Namespace "account" $in.name "rules" $role.rules) }}
{{- else if $role }}
{{- $everywhere := list }}
{{- $there := list }}
{{- range $role.rules }}
{{- $wide := list }}
{{- $narrow := list }}
{{- range .resources }}
{{- if has . (list "namespaces" "applicationdefinitions") }}{{ $wide = append $wide . }}{{ else }}{{ $narrow = append $narrow . }}{{ end }}
{{- end }}
{{- if $wide }}{{ $everywhere = append $everywhere (dict "apiGroups" .apiGroups "resources" $wide "verbs" .verbs) }}{{ end }}
{{- if $narrow }}{{ $there = append $there (dict "apiGroups" .apiGroups "resources" $narrow "verbs" .verbs) }}{{ end }}
{{- end }}
{{- include "waybill.bound" (dict "root" $in.root "kind" "ClusterRole" "name" $in.name "account" $in.name "rules" $everywhere) }}
{{- include "waybill.bound" (dict "root" $in.root "kind" "Role" "name" $in.name "namespace" $in.namespace "account" $in.name "rules" $there) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The files of the dashboard: a folder of the volume's name each. Takes its values. */}}
{{- define "waybill.dashboardVolumes" -}}
{{- with .tlsSecret }}
- name: tls
  secret: {secretName: {{ . }}}
{{- end }}
{{- if .oidc.issuerURL }}
- name: session
  secret: {secretName: {{ .session.keySecret | default "waybill-dashboard-session" }}}
{{- with .oidc.clientSecret }}
- name: client
  secret: {secretName: {{ . }}}
{{- end }}
{{- end }}
{{- with .oidc.caConfigMap | default .proxy.caConfigMap }}
- name: ca
  configMap: {name: {{ . }}}
{{- end }}
{{- end }}

{{- define "waybill.dashboardMounts" -}}
{{- range . }}
- {name: {{ .name }}, mountPath: /{{ .name }}, readOnly: true}
{{- end }}
{{- end }}
