{{- if .Topology.IsHCP }}{{ notApplicable "hosted control planes take this through the NodePool: put it into a ConfigMap named in spec.config of the NodePool" }}{{ end -}}
# Huge pages for virtual machines, collected in the background at a pace that fits the memory of the node.
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-{{ .Params.role }}-thp-tuning
  labels:
    machineconfiguration.openshift.io/role: {{ .Params.role }}
spec:
  config:
    ignition:
      version: 3.2.0
    storage:
      files:
        - path: /usr/local/bin/virt-thp-tuning
          mode: 0755
          overwrite: true
          contents:
            compression: gzip
            source: data:;base64,{{ readAsset "scripts/virt-thp-tuning.sh" | gzip | b64enc }}
    systemd:
      units:
        - name: virt-thp-tuning.service
          enabled: true
          contents: |
            [Unit]
            Description=Tune transparent huge pages for virtual machines
            After=local-fs.target

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            TimeoutStartSec=60
            ExecStart=/usr/local/bin/virt-thp-tuning

            [Install]
            WantedBy=multi-user.target
