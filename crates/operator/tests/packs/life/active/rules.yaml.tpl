apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: life-rules
  namespace: {{ .HCO.GetNamespace }}
spec:
  groups:
    - name: life
      rules:
        - record: life:one
          expr: vector(1)
