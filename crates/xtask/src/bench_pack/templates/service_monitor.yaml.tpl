apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ .Params.name }}
  namespaceSelector:
    matchNames:
      - {{ .HCO.GetNamespace }}
  endpoints:
{{- range splitList "," .Params.ports }}
    - port: {{ . }}
      path: /{{ . }}
      interval: {{ $.Params.interval }}
{{- end }}
