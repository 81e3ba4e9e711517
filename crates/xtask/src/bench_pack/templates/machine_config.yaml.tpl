apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-{{ .Params.role }}-{{ .Params.name }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
    machineconfiguration.openshift.io/role: {{ .Params.role }}
spec:
  config:
    ignition:
      version: 3.4.0
    storage:
      files:
        - path: /usr/local/bin/{{ .Params.name }}
          mode: 0755
          overwrite: true
          contents:
            source: data:;base64,{{ readAsset .Params.script | b64enc }}
        - path: /usr/local/lib/{{ .Params.name }}/fallback
          mode: 0755
          overwrite: true
          contents:
            compression: gzip
            source: data:;base64,{{ readAsset .Params.script | gzip | b64enc }}
    systemd:
      units:
        - name: {{ .Params.name }}.service
          enabled: true
          contents: |
            [Unit]
            Description={{ .Params.name | replace "-" " " | title }}
            After=local-fs.target
            Before=kubelet-dependencies.target

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            TimeoutStartSec=120
            ExecStart=/usr/local/bin/{{ .Params.name }}

            [Install]
            WantedBy=kubelet-dependencies.target
{{- range list "system" "kubepods" }}
        - name: {{ . }}.slice
          dropins:
            - name: 10-{{ $.Params.name }}.conf
              contents: |
                [Slice]
                IOWeight={{ ternary 800 100 (eq . "system") }}
{{- end }}
