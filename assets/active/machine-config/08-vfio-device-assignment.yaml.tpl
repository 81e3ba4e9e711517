{{- if .Topology.IsHCP }}{{ notApplicable "hosted control planes take this through the NodePool: put it into a ConfigMap named in spec.config of the NodePool" }}{{ end -}}
{{- $hex := splitList "" "0123456789abcdef" }}
{{- $ids := list }}
{{- $text := "" }}
{{- if hasKey .HCO.GetAnnotations "platform.kubevirt.io/vfio-pci-ids" }}
{{- $text = index .HCO.GetAnnotations "platform.kubevirt.io/vfio-pci-ids" | lower | trim }}
{{- end }}
{{- range (ternary (list) (splitList "," $text) (eq $text "")) }}
{{- $id := trim . }}
{{- $characters := splitList "" $id }}
{{- $is_id := eq (len $characters) 9 }}
{{- range $index, $character := $characters }}
{{- if not (has $character (ternary (list ":") $hex (eq $index 4))) }}{{ $is_id = false }}{{ end }}
{{- end }}
{{- if not $is_id }}
{{- fail (printf "annotation platform.kubevirt.io/vfio-pci-ids: %q is no vendor:device id, four hexadecimal digits each, such as 10de:1eb8; separate several by commas" (slice $characters 0 (min 40 (len $characters)) | join "")) }}
{{- end }}
{{- $ids = append $ids $id }}
{{- end }}
{{- if gt (len $ids) 32 }}
{{- fail (printf "annotation platform.kubevirt.io/vfio-pci-ids has %d ids, and 32 are the most" (len $ids)) }}
{{- end }}
# Loads the driver that hands PCI devices to virtual machines, at boot, so that it is there before any other driver is asked to
# let go of a device. Devices named in the annotation are taken by it from the start: every device of that kind, on every node
# of the pool, also one that the node itself needs.
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-{{ .Params.role }}-vfio-device-assignment
  labels:
    machineconfiguration.openshift.io/role: {{ .Params.role }}
spec:
  config:
    ignition:
      version: 3.2.0
    storage:
      files:
        - path: /etc/modules-load.d/virt-vfio-pci.conf
          mode: 0644
          overwrite: true
          contents:
            source: data:,vfio-pci%0A
{{- if $ids }}
  # An argument of the kernel, not an option in modprobe.d: it also holds while the initial RAM disk loads drivers.
  kernelArguments:
    - {{ printf "vfio-pci.ids=%s" (uniq $ids | join ",") | quote }}
{{- end }}
