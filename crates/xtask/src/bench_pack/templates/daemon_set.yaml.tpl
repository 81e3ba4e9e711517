apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ .Params.name }}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 1
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {{ .Params.name }}
    spec:
      serviceAccountName: {{ .Params.name }}
      # No node has this label, so no pods are created.
      nodeSelector:
        app.kubernetes.io/part-of: virtpilot-bench
      tolerations:
        - operator: Exists
      containers:
        - name: exporter
          image: {{ .Params.image }}
          args:
            - --log-level={{ dig "spec" "deployment" "logVerbosity" "info" .HCO.Object }}
          env:
{{- range $name := splitList "," .Params.features }}
            - name: ENABLE_{{ $name | upper }}
              value: "true"
{{- end }}
          ports:
            - name: metrics
              containerPort: 8080
              protocol: TCP
          livenessProbe:
            httpGet:
              path: /healthz
              port: metrics
          resources:
            requests:
              cpu: 50m
              memory: 64Mi
            limits:
              cpu: 200m
              memory: 256Mi
          securityContext:
            readOnlyRootFilesystem: true
            allowPrivilegeEscalation: false
            capabilities:
              drop: [ALL]
