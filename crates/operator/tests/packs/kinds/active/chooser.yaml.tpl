apiVersion: v1
kind: ConfigMap
metadata:
  name: kinds-chooser
  namespace: openshift-cnv
data:
  mode: {{ if crdHasEnum "widgets.kinds.example" "spec.mode" "New" }}new{{ else }}old{{ end }}
