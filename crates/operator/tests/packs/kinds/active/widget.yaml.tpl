apiVersion: kinds.example/v1
kind: Widget
metadata:
  name: kinds-widget
  namespace: openshift-cnv
spec:
  mode: Old
