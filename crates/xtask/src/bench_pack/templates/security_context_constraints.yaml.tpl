apiVersion: security.openshift.io/v1
kind: SecurityContextConstraints
metadata:
  name: {{ .Params.name }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
{{- range list "HostDirVolumePlugin" "HostIPC" "HostNetwork" "HostPID" "HostPorts" "PrivilegedContainer" }}
allow{{ . }}: false
{{- end }}
priority: {{ .Params.priority }}
allowedCapabilities: []
defaultAddCapabilities: []
requiredDropCapabilities: [ALL]
readOnlyRootFilesystem: true
runAsUser:
  type: MustRunAsNonRoot
seLinuxContext:
  type: MustRunAs
volumes: [configMap, emptyDir, projected]
# A dedicated account instead of a group, so that no other workload gets these rights.
users:
  - system:serviceaccount:{{ .HCO.GetNamespace }}:{{ .Params.account }}
