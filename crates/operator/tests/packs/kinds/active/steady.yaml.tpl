apiVersion: v1
kind: ConfigMap
metadata:
  name: kinds-steady
  namespace: openshift-cnv
data:
  first: "one"
