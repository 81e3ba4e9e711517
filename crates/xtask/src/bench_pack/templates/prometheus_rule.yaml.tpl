apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
    prometheus: k8s
    role: alert-rules
spec:
  groups:
{{- range $part := list "read" "write" "flush" "poll" "queue" "scrape" }}
    - name: {{ $.Params.subject }}-{{ $part }}
      interval: 30s
      rules:
{{- range $window := list "1m" "5m" "10m" "30m" "1h" "6h" "1d" }}
        - record: node:{{ $.Params.subject }}_{{ $part }}_seconds:p99_{{ $window }}
          expr: |
            histogram_quantile(0.99, sum by (node, le) (
              rate(kubevirt_{{ $.Params.subject }}_{{ $part }}_seconds_bucket{namespace!="",node!=""}[{{ $window }}])
            ))
          labels:
            subsystem: {{ $.Params.subject }}
{{- end }}
{{- range $severity, $seconds := dict "info" "0.05" "warning" "0.1" "critical" "0.5" }}
        - alert: {{ $.Params.subject | title }}{{ $part | title }}Slow{{ $severity | title }}
          expr: |
            node:{{ $.Params.subject }}_{{ $part }}_seconds:p99_10m > {{ $seconds }}
              and on (node) kube_node_status_condition{condition="Ready",status="true"} == 1
          for: 10m
          labels:
            severity: {{ $severity }}
            operator_health_impact: none
            kubernetes_operator_part_of: kubevirt
          annotations:
            summary: '{{ $.Params.subject | title }} {{ $part }} on {{ "{{ $labels.node }}" }} takes longer than {{ $seconds }} s'
            description: >-
              The 99th percentile of {{ $.Params.subject }} {{ $part }} on node {{ "{{ $labels.node }}" }} has been
              {{ "{{ $value | humanizeDuration }}" }} for ten minutes. Virtual machines on this node wait for it; look at
              the node's dashboard before moving them elsewhere.
            runbook_url: https://kubevirt.io/monitoring/runbooks/{{ $.Params.subject }}-{{ $part }}
{{- end }}
{{- end }}
