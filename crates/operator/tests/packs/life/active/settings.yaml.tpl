apiVersion: v1
kind: ConfigMap
metadata:
  name: life-settings
  namespace: {{ .HCO.GetNamespace }}
data:
  first: one
