apiVersion: v1
kind: ConfigMap
metadata:
  name: life-kept
  namespace: {{ .HCO.GetNamespace }}
data:
  first: one
