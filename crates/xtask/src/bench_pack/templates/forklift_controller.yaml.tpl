apiVersion: forklift.konveyor.io/v1beta1
kind: ForkliftController
metadata:
  name: {{ .Params.name }}
  namespace: openshift-mtv
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
{{- range list "ui_plugin" "validation" "volume_populator" }}
  feature_{{ . }}: "true"
{{- end }}
  controller_max_vm_inflight: {{ .Params.inflight }}
