apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
    app.kubernetes.io/name: {{ .Params.name }}
automountServiceAccountToken: false
