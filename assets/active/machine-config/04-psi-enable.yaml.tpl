{{- if .Topology.IsHCP }}{{ notApplicable "hosted control planes take this through the NodePool: put it into a ConfigMap named in spec.config of the NodePool" }}{{ end -}}
{{- if eq (dig "platform.kubevirt.io/psi-enabled" "" .HCO.GetAnnotations | trim | lower) "true" }}{{ notApplicable "the annotation platform.kubevirt.io/psi-enabled says that the nodes have it on already" }}{{ end -}}
{{- if eq .Topology.TotalNodeCount 1 }}{{ notApplicable "the cluster has one node: the descheduler, which needs it, has nowhere to move virtual machines to" }}{{ end -}}
{{- $crd := "kubedeschedulers.operator.openshift.io" }}
{{- if not (or (crdHasEnum $crd "spec.profiles" "KubeVirtRelieveAndMigrate") (crdHasEnum $crd "spec.profiles" "DevKubeVirtRelieveAndMigrate")) }}{{ notApplicable "the installed descheduler operator has no profile that uses it" }}{{ end -}}
# Pressure stall information, by which the load-aware descheduler judges nodes. Red Hat's kernels have it off.
#
# No release is left out. The documentation of OpenShift 4.21 calls it enabled by default, but the machine-config operator only
# stopped adding psi=0: the kernel's default stays, and clusters that were installed before keep psi=0 in
# 97-{{ .Params.role }}-generated-kubelet. The last argument of a name counts, and 99 comes after 97. Where it is on already,
# psi=1 changes nothing.
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-openshift-machineconfig-{{ .Params.role }}-psi-karg
  labels:
    machineconfiguration.openshift.io/role: {{ .Params.role }}
spec:
  config:
    ignition:
      version: 3.2.0
  kernelArguments:
    - psi=1
