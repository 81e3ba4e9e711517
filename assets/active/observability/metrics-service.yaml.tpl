# Where the autopilot's own metrics are scraped.
apiVersion: v1
kind: Service
metadata:
  name: virt-platform-autopilot-metrics
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app: virt-platform-autopilot
    app.kubernetes.io/name: virt-platform-autopilot
    app.kubernetes.io/component: autopilot
{{- if and .SecureMetrics .ClusterVersion }}
  annotations:
    # OpenShift writes a certificate for this Service into this Secret, which the operator's pods mount.
    service.beta.openshift.io/serving-cert-secret-name: virt-platform-autopilot-metrics-certificate
{{- end }}
spec:
  selector:
    app: virt-platform-autopilot
    control-plane: controller-manager
  ports:
    - name: metrics
      port: 8080
      targetPort: 8080
      protocol: TCP
