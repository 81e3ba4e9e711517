apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: scene-workload
  namespace: {{ .HCO.GetNamespace }}
spec:
  selector:
    matchLabels: {app: scene}
  template:
    metadata:
      labels: {app: scene}
    spec:
      nodeSelector: {scene/nowhere: "true"}
      containers:
        - name: main
          image: scene
          resources:
            requests: {cpu: 10m}
