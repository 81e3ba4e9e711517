{{- if .Topology.IsHCP }}{{ notApplicable "hosted control planes take this through the NodePool: put it into a ConfigMap named in spec.config of the NodePool" }}{{ end -}}
# Keeps the kernel from moving memory and tasks between NUMA nodes by itself. That is good for virtual machines that are not
# pinned; for pinned ones without huge pages it only costs page faults. Neither is right for every platform, so that it is left
# on unless asked otherwise.
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-{{ .Params.role }}-virt-numa-balancing
  labels:
    machineconfiguration.openshift.io/role: {{ .Params.role }}
spec:
  config:
    ignition:
      version: 3.2.0
    storage:
      files:
        # The dash: kernels for machines with one NUMA node may lack the setting.
        - path: /etc/sysctl.d/90-virt-numa-balancing.conf
          mode: 0644
          overwrite: true
          contents:
            source: data:,-kernel.numa_balancing%20%3D%200%0A
