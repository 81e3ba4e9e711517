apiVersion: metallb.io/v1beta1
kind: MetalLB
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  logLevel: {{ .Params.level }}
  nodeSelector:
    node-role.kubernetes.io/worker: ""
