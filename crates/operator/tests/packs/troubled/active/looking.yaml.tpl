apiVersion: v1
kind: ConfigMap
metadata: {name: looking, namespace: {{ .HCO.GetNamespace }}}
data: {seen: {{ getConfigMapData .HCO.GetNamespace "source" "word" | quote }}}
