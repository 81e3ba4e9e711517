# The logs in the console.
{{- /* The same condition as that of the LokiStack. */}}
{{- if not (or .Topology.IsAWS .Topology.IsAzure .Topology.IsGCP .Topology.IsVSphere .Topology.IsOpenStack (dig "platform.kubevirt.io/logging-storage-class" "" .HCO.GetAnnotations | trim)) }}
{{- notApplicable "the LokiStack needs a storage class first; name one in the annotation platform.kubevirt.io/logging-storage-class of the HyperConverged" }}
{{- end }}
apiVersion: observability.openshift.io/v1alpha1
kind: UIPlugin
metadata:
  name: logging
spec:
  type: Logging
  logging:
    lokiStack:
      name: logging-loki
