apiVersion: observability.openshift.io/v1alpha1
kind: UIPlugin
metadata:
  # The CRD allows one name per type.
  name: {{ .Params.name }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  type: {{ .Params.type }}
  {{- if eq .Params.type "Monitoring" }}
  monitoring:
    perses:
      enabled: true
  {{- end }}
  deployment:
    nodeSelector:
      kubernetes.io/os: linux
