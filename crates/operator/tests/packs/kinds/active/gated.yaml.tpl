apiVersion: v1
kind: ConfigMap
metadata:
  name: kinds-gated
  namespace: openshift-cnv
data:
  first: "one"
