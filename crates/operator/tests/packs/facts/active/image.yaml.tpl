apiVersion: v1
kind: ConfigMap
metadata:
  name: facts-image
  namespace: openshift-cnv
data:
  image: {{ index .Images "some-tool" }}
