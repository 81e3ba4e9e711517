apiVersion: v1
kind: ConfigMap
metadata:
  name: life-extra
  namespace: {{ .HCO.GetNamespace }}
data:
  first: one
