# The account of the log collector. What it may read is granted by the bindings beside it.
{{- /* The same condition as that of the LokiStack. */}}
{{- if not (or .Topology.IsAWS .Topology.IsAzure .Topology.IsGCP .Topology.IsVSphere .Topology.IsOpenStack (dig "platform.kubevirt.io/logging-storage-class" "" .HCO.GetAnnotations | trim)) }}
{{- notApplicable "the LokiStack needs a storage class first; name one in the annotation platform.kubevirt.io/logging-storage-class of the HyperConverged" }}
{{- end }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: collector
  namespace: openshift-logging
