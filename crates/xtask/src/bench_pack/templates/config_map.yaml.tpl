apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
data:
  log-level: {{ dig "spec" "deployment" "logVerbosity" "info" .HCO.Object | quote }}
  config.yaml: |
{{ readAsset .Params.file | trim | indent 4 }}
