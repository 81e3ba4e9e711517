# Detects nodes that have lost their shared storage and marks them with a condition; the remediation itself is left to the health check.
{{- $class := dig "platform.kubevirt.io/sbr-storage-class" "" .HCO.GetAnnotations | trim }}
{{- if not $class }}
{{- $classes := storageProfileRWXClasses }}
{{- if gt (len $classes) 1 }}
{{- /* The first of several would become another one as soon as a class is added. */}}
{{- notApplicable (printf "several storage classes offer shared file systems (%s); name one in the annotation platform.kubevirt.io/sbr-storage-class of the HyperConverged" (join ", " $classes)) }}
{{- end }}
{{- $class = first $classes }}
{{- end }}
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
