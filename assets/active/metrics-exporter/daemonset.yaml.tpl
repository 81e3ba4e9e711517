# Measures the storage latency and memory of virtual machines on every worker.
{{- $env := dict
      "ENABLE_QMP" "true"
      "ENABLE_QGA" "true"
      "ENABLE_EBPF" "true"
      "ENABLE_EBPF_BLOCK" "true"
      "ENABLE_EBPF_NFS" "true"
      "ENABLE_EBPF_NFS_KPROBE" "false"
      "ENABLE_KVM" "true"
      "ENABLE_CGROUP" "true"
      "QMP_POLL_INTERVAL" "1m"
      "QGA_POLL_INTERVAL" "1m"
      "KVM_POLL_INTERVAL" "30s"
      "CGROUP_POLL_INTERVAL" "30s"
      "EBPF_SCAN_INTERVAL" "30"
      "LOG_LEVEL" "info" }}
{{- $text := dig "platform.kubevirt.io/kubevirt-metrics-exporter-env" "" .HCO.GetAnnotations | trim }}
{{- if $text }}
{{- $overrides := dict }}
{{- if hasPrefix "{" $text }}{{ $overrides = fromJson $text }}{{ end }}
{{- if and (not $overrides) (ne (nospace $text) "{}") }}
{{- fail "annotation platform.kubevirt.io/kubevirt-metrics-exporter-env of the HyperConverged is not a JSON object; write for example {\"LOG_LEVEL\": \"debug\"}" }}
{{- end }}
{{- range $name, $value := $overrides }}
{{- if not (hasKey $env $name) }}
{{- fail (printf "annotation platform.kubevirt.io/kubevirt-metrics-exporter-env of the HyperConverged: %q cannot be set; use one of %s" $name (keys $env | join ", ")) }}
{{- end }}
{{- end }}
{{- $env = mergeOverwrite $env $overrides }}
{{- end }}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: kubevirt-metrics-exporter
  namespace: kubevirt-metrics-exporter
  labels:
    app: kubevirt-metrics-exporter
spec:
  selector:
    matchLabels:
      app: kubevirt-metrics-exporter
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 1
  template:
    metadata:
      labels:
        app: kubevirt-metrics-exporter
      annotations:
        openshift.io/required-scc: kubevirt-metrics-exporter
    spec:
      serviceAccountName: kubevirt-metrics-exporter
      hostPID: true
      nodeSelector:
        node-role.kubernetes.io/worker: ""
      tolerations:
        - operator: Exists
      containers:
        - name: exporter
          image: {{ index .Images "kubevirt-metrics-exporter" | quote }}
          env:
            - name: NODE_NAME
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
{{- range $name, $value := $env }}
            - name: {{ $name }}
              value: {{ $value | toString | quote }}
{{- end }}
          ports:
            - name: metrics
              containerPort: 8080
              protocol: TCP
          livenessProbe:
            httpGet:
              path: /healthz
              port: metrics
            initialDelaySeconds: 10
            periodSeconds: 30
          readinessProbe:
            httpGet:
              path: /healthz
              port: metrics
            initialDelaySeconds: 5
            periodSeconds: 10
          resources:
            requests:
              cpu: 50m
              memory: 64Mi
            limits:
              cpu: 200m
              memory: 256Mi
          securityContext:
            privileged: false
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            runAsUser: 0
            capabilities:
              add: [BPF, DAC_OVERRIDE, PERFMON, SYS_PTRACE, SYS_RESOURCE]
              drop: [ALL]
          volumeMounts:
            - name: crio-socket
              mountPath: /run/crio/crio.sock
              readOnly: true
            - name: sys
              mountPath: /sys
              readOnly: true
              mountPropagation: HostToContainer
      volumes:
        - name: crio-socket
          hostPath:
            path: /run/crio/crio.sock
            type: Socket
        - name: sys
          hostPath:
            path: /sys
            type: Directory
