apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-worker-life
  labels:
    machineconfiguration.openshift.io/role: worker
spec:
  kernelArguments:
    - life=1
