{{- if .Topology.IsHCP }}{{ notApplicable "hosted control planes take this through the NodePool: put it into a ConfigMap named in spec.config of the NodePool" }}{{ end -}}
# Merges memory pages that hold nothing but zeros, which Windows guests have many of. Other pages are never merged: where the
# kernel cannot be restricted to zero pages, KSM is not started.
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-{{ .Params.role }}-ksm-zero-only
  labels:
    machineconfiguration.openshift.io/role: {{ .Params.role }}
spec:
  config:
    ignition:
      version: 3.2.0
    storage:
      files:
        - path: /usr/local/bin/virt-ksm-zero-only
          mode: 0755
          overwrite: true
          contents:
            compression: gzip
            source: data:;base64,{{ readAsset "scripts/virt-ksm-zero-only.sh" | gzip | b64enc }}
    systemd:
      units:
        - name: virt-ksm-zero-only.service
          enabled: true
          contents: |
            [Unit]
            Description=Merge memory pages that hold only zeros
            After=local-fs.target

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            TimeoutStartSec=60
            ExecStart=/usr/local/bin/virt-ksm-zero-only

            [Install]
            WantedBy=multi-user.target
