apiVersion: v1
kind: Service
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
    app.kubernetes.io/name: {{ .Params.name }}
spec:
  selector:
    app.kubernetes.io/name: {{ .Params.name }}
  ports:
{{- range $index, $port := splitList "," .Params.ports }}
    - name: {{ $port }}
      port: {{ add 8080 $index }}
      targetPort: {{ $port }}
      protocol: TCP
{{- end }}
