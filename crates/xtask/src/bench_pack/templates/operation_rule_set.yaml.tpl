apiVersion: ifo.kubevirt.io/v1alpha1
kind: OperationRuleSet
metadata:
  name: {{ .Params.name }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
    ifo.kubevirt.io/correlation-role: {{ .Params.role }}
spec:
  component: {{ .Params.component }}
  target:
    group: {{ .Params.group }}
    version: {{ .Params.version }}
    resource: {{ .Params.resource }}
  rules:
{{- range splitList "," .Params.phases }}
    - operation: {{ . }}
      expression: has(object.status) && has(object.status.phase) && object.status.phase == {{ . | quote }}
{{- end }}
