apiVersion: v1
kind: ConfigMap
metadata:
  name: life-adopted
  namespace: {{ .HCO.GetNamespace }}
data:
  first: one
