apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata:
  name: {{ .Params.name }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  autoSizingReserved: true
  machineConfigPoolSelector:
    matchLabels:
      pools.operator.machineconfiguration.openshift.io/{{ .Params.pool }}: ""
  kubeletConfig:
    nodeStatusMaxImages: -1
    maxPods: {{ dig "spec" "deployment" "maxPods" 500 .HCO.Object }}
    {{- if eq .Params.cpus "static" }}
    cpuManagerPolicy: static
    cpuManagerReconcilePeriod: 5s
    reservedSystemCPUs: 0-1
    {{- end }}
