apiVersion: remediation.medik8s.io/v1alpha1
kind: NodeHealthCheck
metadata:
  name: {{ .Params.name }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  minHealthy: 51%
  selector:
    matchExpressions:
      - key: node-role.kubernetes.io/{{ .Params.role }}
        operator: Exists
  remediationTemplate:
    apiVersion: self-node-remediation.medik8s.io/v1alpha1
    kind: SelfNodeRemediationTemplate
    name: automatic
    namespace: openshift-workload-availability
  unhealthyConditions:
{{- range list "False" "Unknown" }}
    - type: Ready
      status: {{ . | quote }}
      duration: {{ $.Params.patience }}
{{- end }}
