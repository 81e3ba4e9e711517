apiVersion: v1
kind: ConfigMap
metadata: {name: fine, namespace: {{ .HCO.GetNamespace }}}
data: {kept: "yes"}
