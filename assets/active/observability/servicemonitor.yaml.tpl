# Lets Prometheus scrape the autopilot's own metrics. Their labels kind, name and namespace are those of the managed object; honorLabels
# keeps them as they are, so that an alert names that object.
#
# Secure metrics are scraped with the token of Prometheus. On OpenShift the certificate is that of the Service and is verified; elsewhere
# it is self-signed.
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: virt-platform-autopilot-metrics
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app: virt-platform-autopilot
    app.kubernetes.io/name: virt-platform-autopilot
    app.kubernetes.io/component: autopilot
spec:
  selector:
    matchLabels:
      app: virt-platform-autopilot
      app.kubernetes.io/component: autopilot
  endpoints:
    - port: metrics
      path: /metrics
{{- if .SecureMetrics }}
      scheme: https
      bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
      tlsConfig:
{{- if .ClusterVersion }}
        caFile: /etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt
        serverName: virt-platform-autopilot-metrics.{{ .HCO.GetNamespace }}.svc
{{- else }}
        insecureSkipVerify: true
{{- end }}
{{- else }}
      scheme: http
{{- end }}
      interval: 30s
      honorLabels: true
