apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-worker-scene
  labels:
    machineconfiguration.openshift.io/role: worker
spec:
  kernelArguments: [quiet]
