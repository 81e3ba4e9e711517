apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/name: {{ .Params.name }}
  policyTypes: [Ingress]
  ingress:
    - from:
        - namespaceSelector:
            matchLabels:
              kubernetes.io/metadata.name: {{ .Params.from }}
      ports:
{{- range list 8080 8443 }}
        - protocol: TCP
          port: {{ . }}
{{- end }}
