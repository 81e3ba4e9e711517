apiVersion: hco.kubevirt.io/v1
kind: HyperConverged
metadata:
  name: {{ .HCO.GetName }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    life: kept
