{{- if .Topology.IsHCP }}{{ notApplicable "hosted control planes take this through the NodePool: put it into a ConfigMap named in spec.config of the NodePool" }}{{ end -}}
{{- if .Topology.IsCompact }}{{ notApplicable "every node is a control plane node, and those get no swap: etcd must not wait for a disk" }}{{ end -}}
# Swap for virtual machines: turned on where the administrator has provided space for it, used by pods within their limits,
# never by system services. Space is a partition with the GPT name OCPSWAP, the file /var/tmp/ocpswap.file, or a partition with
# the GPT name CNV_SWAP, which the Go advisor asked for, or several of these, each formatted with mkswap; nothing is ever
# formatted here. Nodes without that space run as before.
#
# Nothing here can keep the kubelet from starting: what comes before it is wanted, not required, and has a time limit, and
# virt-swap-on turns swap on only where the kubelet accepts it. There is no variant for masters: etcd must not wait for a disk.
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 90-{{ .Params.role }}-swap-online
  labels:
    machineconfiguration.openshift.io/role: {{ .Params.role }}
spec:
  config:
    ignition:
      version: 3.2.0
    storage:
      files:
        # failSwapOn: false, memorySwap.swapBehavior: LimitedSwap.
        - path: /etc/openshift/kubelet.conf.d/90-swap.conf
          mode: 0644
          overwrite: true
          contents:
            source: data:,apiVersion:%20kubelet.config.k8s.io/v1beta1%0Akind:%20KubeletConfiguration%0AfailSwapOn:%20false%0AmemorySwap:%0A%20%20swapBehavior:%20LimitedSwap%0A
        - path: /usr/local/bin/virt-swap-on
          mode: 0755
          overwrite: true
          contents:
            compression: gzip
            source: data:;base64,{{ readAsset "scripts/virt-swap-on.sh" | gzip | b64enc }}
        - path: /usr/local/bin/virt-swap-watermarks
          mode: 0755
          overwrite: true
          contents:
            compression: gzip
            source: data:;base64,{{ readAsset "scripts/virt-swap-watermarks.sh" | gzip | b64enc }}
        - path: /usr/local/bin/virt-swap-io-latency
          mode: 0755
          overwrite: true
          contents:
            compression: gzip
            source: data:;base64,{{ readAsset "scripts/virt-swap-io-latency.sh" | gzip | b64enc }}
    systemd:
      units:
        # The kubelet waits for the network anyway, so this may too: by then slow disks have been found.
        - name: virt-swap-partition.service
          enabled: true
          contents: |
            [Unit]
            Description=Use the partition OCPSWAP as swap space
            ConditionFirstBoot=no
            ConditionPathExists=/dev/disk/by-partlabel/OCPSWAP
            After=local-fs.target network-online.target
            Before=kubelet-dependencies.target

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            TimeoutStartSec=60
            ExecStart=/usr/local/bin/virt-swap-on /dev/disk/by-partlabel/OCPSWAP 100

            [Install]
            WantedBy=kubelet-dependencies.target
        # The name that the Go advisor looked for: nodes that it gave swap keep theirs.
        - name: virt-swap-cnv-partition.service
          enabled: true
          contents: |
            [Unit]
            Description=Use the partition CNV_SWAP as swap space
            ConditionFirstBoot=no
            ConditionPathExists=/dev/disk/by-partlabel/CNV_SWAP
            After=local-fs.target network-online.target
            Before=kubelet-dependencies.target

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            TimeoutStartSec=60
            ExecStart=/usr/local/bin/virt-swap-on /dev/disk/by-partlabel/CNV_SWAP 100

            [Install]
            WantedBy=kubelet-dependencies.target
        - name: virt-swap-file.service
          enabled: true
          contents: |
            [Unit]
            Description=Use the file /var/tmp/ocpswap.file as swap space
            ConditionFirstBoot=no
            ConditionPathExists=/var/tmp/ocpswap.file
            RequiresMountsFor=/var/tmp
            After=local-fs.target
            Before=kubelet-dependencies.target

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            TimeoutStartSec=60
            ExecStart=/usr/local/bin/virt-swap-on /var/tmp/ocpswap.file 10

            [Install]
            WantedBy=kubelet-dependencies.target
        - name: virt-swap-watermarks.service
          enabled: true
          contents: |
            [Unit]
            Description=Let swapping begin before the kubelet evicts
            After=kubelet.service

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            TimeoutStartSec=120
            ExecStart=/usr/local/bin/virt-swap-watermarks

            [Install]
            WantedBy=multi-user.target
        - name: virt-swap-io-latency.service
          enabled: true
          contents: |
            [Unit]
            Description=Keep swapping from starving system services of disk
            After=local-fs.target swap.target virt-swap-partition.service virt-swap-cnv-partition.service virt-swap-file.service

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            TimeoutStartSec=120
            ExecStart=/usr/local/bin/virt-swap-io-latency

            [Install]
            WantedBy=multi-user.target
        # What wasp-agent, which did this before, left behind. Its hook goes before its script: a hook without its script
        # would keep every container from starting.
        - name: virt-swap-remove-wasp-hook.service
          enabled: true
          contents: |
            [Unit]
            Description=Remove the OCI hook of wasp-agent
            ConditionPathExistsGlob=/run/containers/oci/hooks.d/swap-for-burstable*.json
            Before=kubelet-dependencies.target

            [Service]
            Type=oneshot
            TimeoutStartSec=60
            ExecStart=/bin/sh -c 'rm -f /run/containers/oci/hooks.d/swap-for-burstable*.json'

            [Install]
            WantedBy=kubelet-dependencies.target
        - name: virt-swap-remove-wasp-script.service
          enabled: true
          contents: |
            [Unit]
            Description=Remove the OCI hook script of wasp-agent
            ConditionPathExistsGlob=/opt/oci-hook-swap*.sh
            ConditionPathExistsGlob=!/run/containers/oci/hooks.d/swap-for-burstable*.json
            After=local-fs.target virt-swap-remove-wasp-hook.service
            Before=kubelet-dependencies.target

            [Service]
            Type=oneshot
            TimeoutStartSec=60
            ExecStart=/bin/sh -c 'rm -f /opt/oci-hook-swap*.sh'

            [Install]
            WantedBy=kubelet-dependencies.target
        - name: system.slice
          dropins:
            - name: 10-virt-swap.conf
              contents: |
                [Slice]
                MemorySwapMax=0
                IOWeight=800
                CPUWeight=800
        - name: kubepods.slice
          dropins:
            - name: 10-virt-swap.conf
              contents: |
                [Slice]
                IOWeight=100
