apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-worker-facts
  labels:
    machineconfiguration.openshift.io/role: worker
spec:
  kernelArguments: [quiet]
