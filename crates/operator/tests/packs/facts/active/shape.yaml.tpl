apiVersion: v1
kind: ConfigMap
metadata:
  name: facts-shape
  namespace: openshift-cnv
data:
  topology: "{{ .Topology.ControlPlaneTopology }}"
  compact: "{{ .Topology.IsCompact }}"
  schedulable: "{{ .Topology.HasSchedulableMasters }}"
