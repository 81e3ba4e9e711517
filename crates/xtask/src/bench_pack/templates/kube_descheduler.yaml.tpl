apiVersion: operator.openshift.io/v1
kind: KubeDescheduler
metadata:
  name: {{ .Params.name }}
  namespace: openshift-kube-descheduler-operator
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  managementState: Managed
  mode: {{ .Params.mode }}
  deschedulingIntervalSeconds: 60
  profiles:
    - LongLifecycle
  evictionLimits:
    total: {{ dig "spec" "virtualization" "liveMigrationConfig" "parallelMigrationsPerCluster" 5 .HCO.Object }}
