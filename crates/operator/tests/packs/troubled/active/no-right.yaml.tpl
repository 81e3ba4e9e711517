apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: no-right, namespace: {{ .HCO.GetNamespace }}}
spec: {podSelector: {}}
