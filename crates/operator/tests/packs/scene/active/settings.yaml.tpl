apiVersion: v1
kind: ConfigMap
metadata:
  name: scene-settings
  namespace: {{ .HCO.GetNamespace }}
data:
  first: one
  second: two
