{{/* The name of everything that the chart makes. */}}
{{- define "warren.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* By these the pods are found; they never change. */}}
{{- define "warren.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "warren.labels" -}}
{{ include "warren.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Refuses values that make servers which do not work. */}}
{{- define "warren.check" -}}
{{- $keys := .Values.secret.keys -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- if not (and .Values.secret.existing $keys.database $keys.adminToken $keys.workerSecret) -}}
{{- fail "several replicas share their keys in PostgreSQL: set secret.existing, and secret.keys.database, adminToken and workerSecret" -}}
{{- end -}}
{{- if .Values.workspace -}}
{{- fail "terminals and agents are each server's own: a service in front of several replicas would lead to another one each time; leave workspace off" -}}
{{- end -}}
{{- end -}}
{{- if and (or $keys.clientToken $keys.database $keys.cluster) (not .Values.secret.existing) -}}
{{- fail "secret.keys names keys of a Secret: set secret.existing" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not (and .Values.secret.existing $keys.adminToken)) -}}
{{- fail "/metrics asks for the administrator's token: for serviceMonitor set secret.existing and secret.keys.adminToken" -}}
{{- end -}}
{{- end -}}

{{/* secretKeyRef of one variable: a list of its name, the Secret and the key. */}}
{{- define "warren.secretVariable" -}}
{{- $variable := index . 0 -}}{{- $secret := index . 1 -}}{{- $key := index . 2 -}}
{{- if and $secret $key }}
- name: {{ $variable }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ $key }}
{{- end -}}
{{- end -}}
