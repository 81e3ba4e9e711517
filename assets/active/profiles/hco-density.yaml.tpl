# Memory overcommit and KSM of virtual machines. The HyperConverged is changed, never created: without it there is no platform to change.
{{- if not .HCO.GetName }}
{{- notApplicable "there is no HyperConverged; create it, and this is planned" }}
{{- end }}
{{- $annotations := .HCO.GetAnnotations }}
{{- /* Control plane nodes get no swap, so neither does a cluster that has only those; hosted ones get it from elsewhere, or not. */}}
{{- $swap := and (eq (dig "platform.kubevirt.io/density-swap" "true" $annotations) "true") (not .Topology.IsCompact) (not .Topology.IsHCP) }}
{{- $ratio := dig "platform.kubevirt.io/density-memory-ratio" (ternary "150" "120" $swap) $annotations }}
{{- /* Whoever asks for more than is safe without swap is told before anything is applied. */}}
{{- if and (gt (toInt $ratio) 120) (not $swap) }}
{{- $why := ternary "this cluster has a hosted control plane, and swap comes through the NodePool there" "every node is a control plane node, and those get no swap" .Topology.IsHCP }}
{{- fail (printf "memoryToRequestRatio %s needs swap, and %s; set memoryToRequestRatio to 120 or less" $ratio $why) }}
{{- end }}
{{- $density := dict "higherWorkloadDensity" (dict "memoryOvercommitPercentage" (toInt $ratio)) }}
{{- if eq (dig "platform.kubevirt.io/density-ksm" "true" $annotations) "true" }}
{{- /* An empty selector selects all nodes. */}}
{{- $selector := dig "platform.kubevirt.io/density-ksm-selector" "{}" $annotations | fromJson }}
{{- $density = set $density "ksmConfiguration" (dict "nodeLabelSelector" $selector) }}
{{- end }}
apiVersion: {{ .HCO.GetAPIVersion }}
kind: HyperConverged
metadata:
  name: {{ .HCO.GetName }}
  namespace: {{ .HCO.GetNamespace }}
spec:
{{- if hasSuffix "/v1beta1" .HCO.GetAPIVersion }}
{{ toYaml $density | indent 2 }}
{{- else }}
  virtualization:
{{ toYaml $density | indent 4 }}
{{- end }}
