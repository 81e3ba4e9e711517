# Alerts about the autopilot. They are in alerts.yaml, which is not a template: alerts have templates of their own.
{{- $runbooks := .Params.runbooks }}
{{- $alerts := (readAsset "observability/alerts.yaml" | fromYaml).alerts }}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: virt-platform-autopilot-alerts
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app: virt-platform-autopilot
    app.kubernetes.io/name: virt-platform-autopilot
    app.kubernetes.io/component: autopilot
    prometheus: k8s
    role: alert-rules
spec:
  groups:
  {{- range $severity := list "critical" "warning" }}
    - name: virt-platform-autopilot.{{ $severity }}
      interval: 30s
      rules:
      {{- range $alert := $alerts }}
      {{- if eq $alert.severity $severity }}
        - alert: {{ $alert.alert }}
          expr: {{ $alert.expr | quote }}
          {{- if hasKey $alert "for" }}
          for: {{ index $alert "for" }}
          {{- end }}
          labels:
            severity: {{ $severity }}
            operator: virt-platform-autopilot
            operator_health_impact: {{ $alert.impact }}
            kubernetes_operator_part_of: kubevirt
            kubernetes_operator_component: autopilot
          annotations:
            summary: {{ $alert.summary | quote }}
            description: {{ $alert.description | quote }}
            runbook: {{ printf "%s/%s.md" $runbooks $alert.alert | quote }}
      {{- end }}
      {{- end }}
  {{- end }}
