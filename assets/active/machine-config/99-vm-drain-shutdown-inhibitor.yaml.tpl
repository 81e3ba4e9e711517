{{- if .Topology.IsHCP }}{{ notApplicable "hosted control planes take this through the NodePool: put it into a ConfigMap named in spec.config of the NodePool" }}{{ end -}}
# Graceful shutdown of virtual machines when their host shuts down: a daemon delays the shutdown, asks every virtual machine to
# shut down, and waits for up to 120 seconds. logind allows 150 seconds, so the daemon always ends first.
#
# The drop-in sorts before the kubelet's own (99-kubelet.conf), so that a longer delay set for the kubelet stays in effect. The
# daemon asks logind which delay is in effect and keeps within it.
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-{{ .Params.role }}-vm-drain-shutdown-inhibitor
  labels:
    machineconfiguration.openshift.io/role: {{ .Params.role }}
spec:
  config:
    ignition:
      version: 3.2.0
    storage:
      files:
        # [Login] InhibitDelayMaxSec=150
        - path: /etc/systemd/logind.conf.d/50-vm-drain-shutdown-inhibitor.conf
          mode: 0644
          overwrite: true
          contents:
            source: data:,%5BLogin%5D%0AInhibitDelayMaxSec%3D150%0A
        - path: /usr/local/bin/vm-drain-shutdown-inhibitor
          mode: 0755
          overwrite: true
          contents:
            compression: gzip
            source: data:;base64,{{ readAsset "scripts/vm-drain-shutdown-inhibitor.sh" | gzip | b64enc }}
    systemd:
      units:
        # Stopped before the container runtime, and only the daemon itself gets SIGTERM: it finishes a drain before it ends.
        - name: vm-drain-shutdown-inhibitor.service
          enabled: true
          contents: |
            [Unit]
            Description=Shut virtual machines down before the host
            After=dbus.service systemd-logind.service crio.service
            StartLimitIntervalSec=0

            [Service]
            Type=simple
            ExecStart=/usr/local/bin/vm-drain-shutdown-inhibitor
            Restart=always
            RestartSec=5
            KillMode=mixed
            TimeoutStopSec=150
            RuntimeDirectory=vm-drain-shutdown-inhibitor
            RuntimeDirectoryMode=0700
            RuntimeDirectoryPreserve=yes
            OOMScoreAdjust=-900
            Nice=-10

            [Install]
            WantedBy=multi-user.target
