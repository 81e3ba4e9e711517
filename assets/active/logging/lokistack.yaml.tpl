# The store of logs. The namespace openshift-logging and the Secret logging-loki-storage, with the access to an object store, must exist.
{{- /* Not by the number of nodes: an autoscaler would resize every component of the store again and again. */}}
{{- $size := dig "platform.kubevirt.io/logging-size" "" .HCO.GetAnnotations | trim | default "1x.extra-small" }}
{{- $sizes := crdEnum "lokistacks.loki.grafana.com" "spec.size" }}
{{- if and $sizes (not (has $size $sizes)) }}
{{- fail (printf "annotation platform.kubevirt.io/logging-size of the HyperConverged: write one of %s" (join ", " $sizes)) }}
{{- end }}
{{- /* The storage classes that the installer creates on clouds. Elsewhere the administrator names one. */}}
{{- $class := dig .Topology.CloudProvider "" (dict "AWS" "gp3-csi" "Azure" "managed-csi" "GCP" "standard-csi" "VSphere" "thin-csi" "OpenStack" "standard-csi") }}
{{- $class = dig "platform.kubevirt.io/logging-storage-class" "" .HCO.GetAnnotations | trim | default $class }}
{{- if not $class }}
{{- notApplicable "no storage class is known for logs on this platform; name one in the annotation platform.kubevirt.io/logging-storage-class of the HyperConverged" }}
{{- end }}
apiVersion: loki.grafana.com/v1
kind: LokiStack
metadata:
  name: logging-loki
  namespace: openshift-logging
spec:
  managementState: Managed
  size: {{ $size }}
  storageClassName: {{ $class | quote }}
  storage:
    schemas:
      - version: v13
        effectiveDate: "2024-10-01"
    secret:
      name: logging-loki-storage
      type: {{ dig .Topology.CloudProvider "s3" (dict "Azure" "azure" "GCP" "gcs") }}
  limits:
    global:
      retention:
        days: 7
  tenants:
    mode: openshift-logging
