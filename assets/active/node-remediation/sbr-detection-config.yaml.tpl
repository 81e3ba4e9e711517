# Detects nodes that have lost their shared storage and marks them with a condition; the remediation itself is left to the health check.
{{- $class := dig "platform.kubevirt.io/sbr-storage-class" "" .HCO.GetAnnotations | trim }}
{{- if not $class }}{{ $class = storageProfileRWXClass }}{{ end }}
{{- if not $class }}
{{- notApplicable "no storage class offers shared file systems (ReadWriteMany, Filesystem), which the detection writes to; name one in the annotation platform.kubevirt.io/sbr-storage-class of the HyperConverged" }}
{{- end }}
apiVersion: storage-based-remediation.medik8s.io/v1alpha1
kind: StorageBasedRemediationConfig
metadata:
  name: autopilot-recommended-values-detection-only
  namespace: openshift-workload-availability
spec:
  detectOnlyMode: Enabled
  sharedStorageClass: {{ $class | quote }}
