# Unhealthy workers are power-cycled by their management controller, so that their virtual machines can start elsewhere without running
# twice. The FenceAgentsRemediationTemplate holds credentials and is made by the administrator; until it exists, nothing is remediated.
{{- if eq (dig "platform.kubevirt.io/enable-self-node-remediation" "" .HCO.GetAnnotations | trim | lower) "true" }}
{{- fail "enable-node-remediation and enable-self-node-remediation are both set: two health checks would remediate the same nodes; remove one of the annotations" }}
{{- end }}
{{- if eq .Topology.TotalNodeCount 1 }}
{{- notApplicable "the cluster has one node: nothing could remediate it" }}
{{- end }}
{{- $numbers := dict }}
{{- range $setting := list (dict "name" "after" "least" 60 "most" 3600 "default" "300") (dict "name" "min-healthy" "least" 51 "most" 100 "default" "51") }}
{{- $text := dig (printf "platform.kubevirt.io/node-remediation-%s" $setting.name) $setting.default $.HCO.GetAnnotations | trim }}
{{- if or (ne (printf "%d" (toInt $text)) $text) (lt (toInt $text) $setting.least) (gt (toInt $text) $setting.most) }}
{{- fail (printf "annotation platform.kubevirt.io/node-remediation-%s of the HyperConverged: write a whole number from %d to %d" $setting.name $setting.least $setting.most) }}
{{- end }}
{{- $numbers = set $numbers $setting.name (toInt $text) }}
{{- end }}
{{- $after := index $numbers "after" }}
apiVersion: remediation.medik8s.io/v1alpha1
kind: NodeHealthCheck
metadata:
  name: far
spec:
  # With fewer healthy nodes the fault is likely that of the network or of the control plane, and restarts would make it worse.
  minHealthy: {{ index $numbers "min-healthy" }}%
  remediationTemplate:
    apiVersion: fence-agents-remediation.medik8s.io/v1alpha1
    kind: FenceAgentsRemediationTemplate
    name: fenceagentsremediationtemplate-default
    namespace: openshift-workload-availability
  selector:
    matchExpressions:
      - key: node-role.kubernetes.io/worker
        operator: Exists
{{- if not .Topology.IsCompact }}
      # One health check should not select both workers and the control plane.
      - key: node-role.kubernetes.io/control-plane
        operator: DoesNotExist
{{- end }}
  unhealthyConditions:
    - type: Ready
      status: "False"
      duration: {{ $after }}s
    - type: Ready
      status: Unknown
      duration: {{ $after }}s
    # Set by storage-based remediation in its detection-only mode.
    - type: SBRStorageUnhealthy
      status: "True"
      duration: {{ $after }}s
