apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 98-worker-first
  labels:
    machineconfiguration.openshift.io/role: worker
spec:
  kernelArguments:
    - first=1
