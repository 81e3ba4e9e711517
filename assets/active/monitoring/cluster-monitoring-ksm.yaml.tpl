{{- $document := getConfigMapData "openshift-monitoring" "cluster-monitoring-config" "config.yaml" | fromYaml -}}
{{- $ours := dict "nodeExporter" (dict "collectors" (dict "ksmd" (dict "enabled" true))) -}}
# Lets the node exporter report on KSM. This one key is ours; the rest of the document stays as its owner wrote it.
apiVersion: v1
kind: ConfigMap
metadata:
  name: cluster-monitoring-config
  namespace: openshift-monitoring
data:
  config.yaml: |
{{ mergeOverwrite $document $ours | toYaml | indent 4 }}
