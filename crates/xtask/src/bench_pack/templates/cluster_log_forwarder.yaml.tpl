apiVersion: observability.openshift.io/v1
kind: ClusterLogForwarder
metadata:
  name: {{ .Params.name }}
  namespace: openshift-logging
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  serviceAccount:
    name: collector
  outputs:
    - name: loki
      type: lokiStack
      lokiStack:
        authentication:
          token:
            from: serviceAccount
        dataModel: Viaq
        labelKeys:
          global: [log_type]
        target:
          name: logging-loki
          namespace: openshift-logging
  pipelines:
{{- range splitList "," .Params.inputs }}
    - name: {{ . }}-logs
      inputRefs: [{{ . }}]
      outputRefs: [loki]
{{- end }}
