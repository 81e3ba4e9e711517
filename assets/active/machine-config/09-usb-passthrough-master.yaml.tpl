{{- if .Topology.IsHCP }}{{ notApplicable "hosted control planes take this through the NodePool: put it into a ConfigMap named in spec.config of the NodePool" }}{{ end -}}
{{- $hex := splitList "" "0123456789abcdef" }}
{{- $devices := dig "spec" "virtualization" "permittedHostDevices" "usbHostDevices" (list) .HCO.Object }}
{{- if not $devices }}{{ $devices = dig "spec" "permittedHostDevices" "usbHostDevices" (list) .HCO.Object }}{{ end }}
{{- $rules := list }}
{{- range $device := $devices }}
{{- range $selector := (dig "disabled" false $device | ternary (list) (dig "selectors" (list) $device)) }}
{{- $match := "" }}
{{- range $field := list "vendor" "product" }}
{{- $id := dig $field "" $selector | toString | lower | trimPrefix "0x" }}
{{- $is_id := and (gt (len $id) 0) (le (len $id) 4) }}
{{- range (splitList "" $id) }}{{ if not (has . $hex) }}{{ $is_id = false }}{{ end }}{{ end }}
{{- if not $is_id }}
{{- fail (printf "permittedHostDevices.usbHostDevices of the HyperConverged: %q is no %s id of one to four hexadecimal digits" (dig $field "" $selector | toString) $field) }}
{{- end }}
{{- $match = printf "%s, ATTRS{id%s}==\"%s%s\"" $match (title $field) (repeat (sub 4 (len $id) | toInt) "0") $id }}
{{- end }}
{{- $rules = append $rules (printf "SUBSYSTEM==\"net\"%s, ENV{NM_UNMANAGED}=\"1\"" $match) }}
{{- $rules = append $rules (printf "SUBSYSTEM==\"block\"%s, ENV{SYSTEMD_READY}=\"0\", ENV{ID_FS_TYPE}=\"\"" $match) }}
{{- end }}
{{- end }}
{{- $asked := eq (dig "platform.kubevirt.io/enable-usb-passthrough" "" .HCO.GetAnnotations | trim | lower) "true" }}
{{- if and $asked (not $rules) }}{{ notApplicable "no USB device is permitted: name those that virtual machines may use under permittedHostDevices.usbHostDevices of the HyperConverged" }}{{ end }}
# Keeps the host off USB devices that belong to virtual machines, those that the HyperConverged permits: NetworkManager does not
# configure their network cards (and take a default route from them), systemd and LVM do not activate what is on their disks.
# Access to the device needs nothing here: virt-handler opens it for the virtual machine, and QEMU detaches the host's driver.
#
# One file for each role, alike but for the role: where nothing is permitted, the name of the object is read from here.
# The number 61: after the rules that look for file systems (60), before those that act on what was found (LVM: 69).
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-master-usb-passthrough
  labels:
    machineconfiguration.openshift.io/role: master
spec:
  config:
    ignition:
      version: 3.2.0
    storage:
      files:
        - path: /etc/udev/rules.d/61-virt-usb-passthrough.rules
          mode: 0644
          overwrite: true
          contents:
            source: data:;base64,{{ printf "%s\n" (uniq $rules | join "\n") | b64enc }}
