apiVersion: v1
kind: ConfigMap
metadata:
  name: scene-adopted
  namespace: {{ .HCO.GetNamespace }}
data:
  first: one
