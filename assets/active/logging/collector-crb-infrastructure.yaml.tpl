# Lets the collector read the logs of the platform and of the nodes. The ClusterRole comes with the operators of logging.
{{- /* The same condition as that of the LokiStack. */}}
{{- if not (or .Topology.IsAWS .Topology.IsAzure .Topology.IsGCP .Topology.IsVSphere .Topology.IsOpenStack (dig "platform.kubevirt.io/logging-storage-class" "" .HCO.GetAnnotations | trim)) }}
{{- notApplicable "the LokiStack needs a storage class first; name one in the annotation platform.kubevirt.io/logging-storage-class of the HyperConverged" }}
{{- end }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: logging-collector-infrastructure
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: collect-infrastructure-logs
subjects:
  - kind: ServiceAccount
    name: collector
    namespace: openshift-logging
