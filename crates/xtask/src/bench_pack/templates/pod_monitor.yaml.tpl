apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ .Params.name }}
  podMetricsEndpoints:
    - port: metrics
      interval: {{ .Params.interval }}
      honorLabels: true
      relabelings:
{{- range list "node" "namespace" "pod" }}
        - action: replace
          sourceLabels: [__meta_kubernetes_{{ . }}_name]
          targetLabel: {{ . }}
{{- end }}
