apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .HCO.Object.spec.nothing.here }}}
