apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-worker-second
  labels:
    machineconfiguration.openshift.io/role: worker
spec:
  kernelArguments:
    - second=1
