{{- if .Topology.IsHCP }}{{ notApplicable "hosted control planes take this through the NodePool: put it into a ConfigMap named in spec.config of the NodePool" }}{{ end -}}
# The IOMMU, which passing a PCI device to a virtual machine needs. One list for all architectures; what is not known to a
# kernel has no effect there:
#   intel_iommu=on         Intel, where the IOMMU is off unless asked for. Other hardware has no such driver.
#   iommu=pt               x86: devices of the host keep direct access, only passed ones are translated.
#   iommu.passthrough=1    the same for ARM, where iommu=pt is not known; on x86 it says the same again.
# AMD (if enabled in the firmware) and ARM turn the IOMMU on by themselves; amd_iommu has no value "on".
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: {{ .Params.name }}
  labels:
    machineconfiguration.openshift.io/role: {{ .Params.role }}
spec:
  config:
    ignition:
      version: 3.2.0
  kernelArguments:
    - intel_iommu=on
    - iommu=pt
    - iommu.passthrough=1
