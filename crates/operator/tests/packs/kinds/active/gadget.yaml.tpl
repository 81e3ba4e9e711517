apiVersion: kinds.example/v1
kind: Gadget
metadata:
  name: kinds-gadget
spec:
  mode: Old
