# Lets Prometheus scrape the autopilot's own metrics. Their labels kind, name and namespace are those of the managed object; honorLabels
# keeps them as they are, so that an alert names that object.
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
      scheme: http
      interval: 30s
      honorLabels: true
