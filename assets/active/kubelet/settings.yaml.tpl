{{- if .Topology.IsHCP }}{{ notApplicable "hosted control planes take this through the NodePool: put it into a ConfigMap named in spec.config of the NodePool" }}{{ end -}}
{{- $annotations := .HCO.GetAnnotations }}
{{- $enabled := dict }}
{{- range $key := list "kubelet-performance-settings" "cpu-manager" "numa" }}
{{- $text := dig (printf "platform.kubevirt.io/enable-%s" $key) "" $annotations | trim | lower }}
{{- if not (has $text (list "true" "false" "")) }}
{{- fail (printf "annotation platform.kubevirt.io/enable-%s must be true or false, and is %q" $key $text) }}
{{- end }}
{{- $enabled = set $enabled $key (eq $text "true") }}
{{- end }}
{{- $performance := index $enabled "kubelet-performance-settings" }}
{{- $pinning := index $enabled "cpu-manager" }}
{{- $numa := and (index $enabled "numa") .Hardware.NUMANodesPresent }}
{{- if not (or $performance $pinning $numa) }}
{{- notApplicable "no node has several NUMA nodes, and nothing else is asked for" }}
{{- end }}
{{- $cpus := or $pinning $numa }}

{{- $mib := 0 }}
{{- if and $numa (hasKey $annotations "platform.kubevirt.io/numa-reserved-memory") }}
{{- $text := index $annotations "platform.kubevirt.io/numa-reserved-memory" }}
{{- $number := trimSuffix "Gi" (trimSuffix "Mi" $text) }}
{{- if eq (printf "%d" (toInt $number)) $number }}
{{- if eq $text (printf "%sMi" $number) }}{{ $mib = toInt $number }}{{ end }}
{{- if eq $text (printf "%sGi" $number) }}{{ $mib = mul (toInt $number) 1024 }}{{ end }}
{{- end }}
{{- if or (lt $mib 1024) (gt $mib 1048576) }}
{{- fail (printf "annotation platform.kubevirt.io/numa-reserved-memory must be a whole number of Mi or Gi from 1Gi to 1024Gi, such as 8Gi, and is %q" $text) }}
{{- end }}
{{- end }}

{{- $settings := dict }}
{{- if $performance }}
{{- /* All images count when pods are placed; up to 500 pods, which needs host prefixes of the cluster network of 23 bits or less. */}}
{{- $settings = merge $settings (dict "nodeStatusMaxImages" -1 "maxPods" 500) }}
{{- end }}
{{- if $cpus }}
{{- /* Which CPUs the node keeps is left to the kubelet: as many as it reserves, with all threads of their cores. One is added
       to what the system has, so that it is a whole core at least. */}}
{{- $settings = merge $settings (dict "cpuManagerPolicy" "static" "cpuManagerReconcilePeriod" "5s"
      "cpuManagerPolicyOptions" (dict "full-pcpus-only" "true") "kubeReserved" (dict "cpu" "1")) }}
{{- end }}
{{- if $numa }}
{{- $settings = merge $settings (dict "topologyManagerPolicy" "best-effort") }}
{{- end }}
{{- if $mib }}
{{- /* The kubelet starts only if what is reserved on NUMA nodes is exactly the sum of what it reserves elsewhere: here
       systemReserved + evictionHard, as kubeReserved has no memory. Setting one threshold unsets the others' defaults. */}}
{{- $settings = merge $settings (dict
      "memoryManagerPolicy" "Static"
      "systemReserved" (dict "memory" (printf "%dMi" $mib))
      "evictionHard" (dict "memory.available" "100Mi" "nodefs.available" "10%" "nodefs.inodesFree" "5%" "imagefs.available" "15%" "imagefs.inodesFree" "5%")
      "reservedMemory" (list (dict "numaNode" 0 "limits" (dict "memory" (printf "%dMi" (add $mib 100)))))) }}
{{- end }}

{{- /* Not on masters: there the larger reservation has starved etcd and the API server. Not beside memory reserved by hand. */}}
{{- $sizes := and $performance (not $mib) (eq .Params.role "worker") }}
{{- $foreign := foreignKubeletConfig .Params.role .Params.name }}
{{- if $foreign }}
{{- notApplicable (printf "KubeletConfig %s already selects these nodes, and only the newest one counts: add to its spec.kubeletConfig %s%s" $foreign (toRawJson $settings) (ternary ", and to its spec autoSizingReserved: true" "" $sizes)) }}
{{- end }}
# All settings of the kubelet that were asked for, in one object: of several for one pool only the newest counts.
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata:
  name: {{ .Params.name }}
spec:
  machineConfigPoolSelector:
{{- if eq .Params.role "master" }}
    matchLabels:
      pools.operator.machineconfiguration.openshift.io/master: ""
{{- else }}
    # Workers and custom pools, which are made of workers.
    matchExpressions:
      - key: pools.operator.machineconfiguration.openshift.io/master
        operator: DoesNotExist
      - key: pools.operator.machineconfiguration.openshift.io/arbiter
        operator: DoesNotExist
{{- end }}
{{- if $sizes }}
  autoSizingReserved: true
{{- end }}
  kubeletConfig:
{{ toYaml $settings | indent 4 }}
