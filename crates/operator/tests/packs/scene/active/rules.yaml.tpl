apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: scene-rules
  namespace: {{ .HCO.GetNamespace }}
spec:
  groups:
    - name: scene
      rules:
        - {record: "scene:one", expr: "vector(1)"}
        - {record: "scene:two", expr: "vector(2)"}
