apiVersion: v1
kind: ConfigMap
metadata:
  name: facts-gpu
  namespace: openshift-cnv
data:
  first: "one"
