# Load-aware rebalancing of virtual machines. The releases of the descheduler operator differ in profiles and fields, so each is used only
# if the installed CRD has it: an unknown field or value would make the API server refuse the object.
{{- $crd := "kubedeschedulers.operator.openshift.io" }}
{{- $namespace := "openshift-kube-descheduler-operator" }}
{{- $annotations := .HCO.GetAnnotations }}
{{- $switches := dict }}
{{- range $key, $default := dict "platform.kubevirt.io/descheduler-waits-for-psi" "true" "platform.kubevirt.io/descheduler-replaces-profiles" "false" "platform.kubevirt.io/descheduler-limit-headroom" "false" "platform.kubevirt.io/descheduler-expects-rules" "false" }}
{{- $text := dig $key $default $annotations | trim | lower }}
{{- if not (has $text (list "true" "false")) }}
{{- fail (printf "annotation %s of the HyperConverged: write true or false" $key) }}
{{- end }}
{{- $switches = set $switches $key (eq $text "true") }}
{{- end }}
{{- $waits := index $switches "platform.kubevirt.io/descheduler-waits-for-psi" }}
{{- $replaces := index $switches "platform.kubevirt.io/descheduler-replaces-profiles" }}
{{- $headroom := index $switches "platform.kubevirt.io/descheduler-limit-headroom" }}
{{- $expects := index $switches "platform.kubevirt.io/descheduler-expects-rules" }}
{{- $words := dict }}
{{- range $key, $known := dict "platform.kubevirt.io/descheduler-mode" (list "Automatic" "Predictive") "platform.kubevirt.io/descheduler-deviation-thresholds" (list "AsymmetricLow" "AsymmetricMedium" "AsymmetricHigh" "Low" "Medium" "High") "platform.kubevirt.io/descheduler-utilization" (list "" "PrometheusCPUCombined" "PrometheusCPUMemoryCombinedProfile") }}
{{- $text := dig $key (first $known) $annotations | trim }}
{{- if not (has $text $known) }}
{{- fail (printf "annotation %s of the HyperConverged: write one of %s" $key (join ", " (compact $known))) }}
{{- end }}
{{- $words = set $words $key $text }}
{{- end }}
{{- $mode := index $words "platform.kubevirt.io/descheduler-mode" }}
{{- $deviation := index $words "platform.kubevirt.io/descheduler-deviation-thresholds" }}
{{- $utilization := index $words "platform.kubevirt.io/descheduler-utilization" }}
{{- $numbers := dict }}
{{- range $key, $range := dict "platform.kubevirt.io/descheduler-interval" (list 60 86400) "platform.kubevirt.io/descheduler-limit-total" (list 1 1000) "platform.kubevirt.io/descheduler-limit-node" (list 1 100) }}
{{- $text := dig $key "" $annotations | trim }}
{{- if $text }}
{{- if or (ne (printf "%d" (toInt $text)) $text) (lt (toInt $text) (first $range)) (gt (toInt $text) (last $range)) }}
{{- fail (printf "annotation %s of the HyperConverged: write a whole number from %d to %d" $key (first $range) (last $range)) }}
{{- end }}
{{- $numbers = set $numbers $key (toInt $text) }}
{{- end }}
{{- end }}
{{- if eq .Topology.TotalNodeCount 1 }}
{{- notApplicable "the cluster has one node: there is no other node to move virtual machines to" }}
{{- end }}
{{- $profile := "" }}
{{- range list "LongLifecycle" "DevKubeVirtRelieveAndMigrate" "KubeVirtRelieveAndMigrate" }}
{{- if crdHasEnum $crd "spec.profiles" . }}{{ $profile = . }}{{ end }}
{{- end }}
{{- if not $profile }}
{{- notApplicable "the installed descheduler operator has no profile that live-migrates virtual machines; update it to 5.1 or later" }}
{{- end }}
{{- $live := lookup "operator.openshift.io/v1" "KubeDescheduler" $namespace "cluster" }}
{{- $isOurs := eq (dig "metadata" "labels" "platform.kubevirt.io/managed-by" "" $live) "virt-platform-autopilot" }}
{{- $others := list }}
{{- $kept := list }}
{{- range dig "spec" "profiles" (list) $live }}
{{- if not (hasSuffix "KubeVirtRelieveAndMigrate" .) }}{{ $others = append $others . }}{{ end }}
{{- /* Those go well with the profile for virtual machines; others move the same pods by another measure. */}}
{{- if and $replaces (has . (list "AffinityAndTaints" "SoftTopologyAndDuplicates")) }}{{ $kept = append $kept . }}{{ end }}
{{- end }}
{{- $profiles := append $kept $profile }}
{{- if and $others (not $isOurs) (not $replaces) }}
{{- notApplicable (printf "KubeDescheduler cluster is somebody else's and has the profiles %s, which this would replace; to have it managed, remove them from it" (join ", " $others)) }}
{{- end }}
{{- if and (ne $profile "LongLifecycle") (not $isOurs) (ne (dig "platform.kubevirt.io/psi-enabled" "" $annotations | trim | lower) "true") }}
{{- $pool := ternary "master" "worker" (eq .Topology.WorkerCount 0) }}
{{- $psi := printf "99-openshift-machineconfig-%s-psi-karg" $pool }}
{{- if and .Topology.IsHCP (not $waits) }}
{{- notApplicable "the descheduler judges nodes by pressure (PSI), which hosted control planes take through the NodePool: turn it on there (kernel argument psi=1), then set enablePSIMetrics to false" }}
{{- else if .Topology.IsHCP }}
{{- notApplicable "the descheduler judges nodes by pressure (PSI): turn it on through the NodePool (kernel argument psi=1), then set the annotation platform.kubevirt.io/psi-enabled of the HyperConverged to true" }}
{{- else if and $waits (not (or (poolRuns $pool $psi) (poolRuns $pool (printf "99-%s-psi-karg" $pool)))) }}
{{- /* Without it, the descheduler operator stops a descheduler that works. */}}
{{- notApplicable (printf "the descheduler judges nodes by pressure (PSI), and the nodes of pool %s do not run the MachineConfig %s yet; if they have PSI without it, set the annotation platform.kubevirt.io/psi-enabled of the HyperConverged to true" $pool $psi) }}
{{- end }}
{{- end }}
{{- /* Customizations of the chosen profile. */}}
{{- $custom := dict }}
{{- if eq $profile "LongLifecycle" }}
{{- /* Without it, the descheduler does not know that an evicted virtual machine is still being migrated. */}}
{{- if not (crdHasField $crd "spec.profileCustomizations.devEnableEvictionsInBackground") }}
{{- notApplicable "the installed descheduler operator does not wait for live migrations (it has no devEnableEvictionsInBackground); update it to 5.1 or later" }}
{{- end }}
{{- $custom = set $custom "devEnableEvictionsInBackground" true }}
{{- /* The pods of virtual machines have local storage and claims, and are left alone otherwise. */}}
{{- $profiles = concat $kept (list "LongLifecycle" "EvictPodsWithPVC" "EvictPodsWithLocalStorage") }}
{{- else }}
{{- /* Compare nodes with the average of the cluster, not with fixed percentages. */}}
{{- /* The operator refuses it together with fixed percentages. */}}
{{- $fixed := dig "spec" "profileCustomizations" "devLowNodeUtilizationThresholds" "" $live }}
{{- if and (not $fixed) (crdHasEnum $crd "spec.profileCustomizations.devDeviationThresholds" $deviation) }}
{{- $custom = set $custom "devDeviationThresholds" $deviation }}
{{- end }}
{{- /* Keep the scheduler from moving virtual machines back to busy nodes. */}}
{{- if crdHasField $crd "spec.profileCustomizations.devEnableSoftTainter" }}
{{- $custom = set $custom "devEnableSoftTainter" true }}
{{- end }}
{{- /* Measured load instead of requests; the query of a utilization profile needs its recording rule. */}}
{{- if crdHasField $crd "spec.profileCustomizations.devActualUtilizationProfile" }}
{{- $applied := dig "spec" "profileCustomizations" "devActualUtilizationProfile" "" $live }}
{{- if $utilization }}
{{- /* Somebody has chosen it. */}}
{{- else if and $expects $applied (has $applied (list "PrometheusCPUCombined" "PrometheusCPUMemoryCombinedProfile")) }}
{{- /* The rules came with the descheduler: what was approved before they were there stays. */}}
{{- $utilization = $applied }}
{{- else if prometheusRuleHasRecordingRule $namespace "descheduler-rules" "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m" }}
{{- $utilization = "PrometheusCPUMemoryCombinedProfile" }}
{{- else if or $expects (objectExists "PrometheusRule" $namespace "descheduler-rules") }}
{{- /* Every release that has measured load brings the rules of this one, together with the descheduler. */}}
{{- $utilization = "PrometheusCPUCombined" }}
{{- end }}
{{- if $utilization }}{{ $custom = set $custom "devActualUtilizationProfile" $utilization }}{{ end }}
{{- end }}
{{- end }}
{{- /* Not more evictions at a time than KubeVirt migrates; the HCO of version v1 has the limits at another place. */}}
{{- $limits := dig "spec" "virtualization" "liveMigrationConfig" (dict) .HCO.Object }}
{{- if hasSuffix "/v1beta1" .HCO.GetAPIVersion }}
{{- $limits = dig "spec" "liveMigrationConfig" (dict) .HCO.Object }}
{{- end }}
{{- $total := dig "parallelMigrationsPerCluster" 5 $limits | toInt }}
{{- $node := dig "parallelOutboundMigrationsPerNode" (ternary 2 1 $headroom) $limits | toInt }}
{{- if $headroom }}
{{- /* Above ten, a fifth is left to migrations that people and updates start. */}}
{{- if gt $total 10 }}{{ $total = add 10 (div (mul (sub $total 10) 4) 5) }}{{ end }}
{{- if gt $node 10 }}{{ $node = add 10 (div (mul (sub $node 10) 4) 5) }}{{ end }}
{{- end }}
{{- $total = dig "platform.kubevirt.io/descheduler-limit-total" $total $numbers }}
{{- $node = dig "platform.kubevirt.io/descheduler-limit-node" (min $node $total) $numbers }}
apiVersion: operator.openshift.io/v1
kind: KubeDescheduler
metadata:
  name: cluster
  namespace: openshift-kube-descheduler-operator
spec:
  managementState: Managed
  # Predictive, the default, only simulates evictions.
  mode: {{ $mode }}
  deschedulingIntervalSeconds: {{ dig "platform.kubevirt.io/descheduler-interval" 60 $numbers }}
  profiles:
{{- range $profiles }}
    - {{ . }}
{{- end }}
{{- if $custom }}
  profileCustomizations:
{{ toYaml $custom | indent 4 }}
{{- end }}
{{- if crdHasField $crd "spec.evictionLimits.total" }}
  evictionLimits:
    total: {{ $total }}
{{- if crdHasField $crd "spec.evictionLimits.node" }}
    node: {{ $node }}
{{- end }}
{{- end }}
