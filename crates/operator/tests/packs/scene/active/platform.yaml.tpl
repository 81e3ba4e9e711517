apiVersion: {{ .HCO.Object.apiVersion }}
kind: HyperConverged
metadata:
  name: {{ .HCO.GetName }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    scene: kept
