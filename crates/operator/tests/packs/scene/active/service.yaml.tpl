apiVersion: v1
kind: Service
metadata:
  name: scene-service
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app: scene
spec:
  selector:
    app: scene
  ports:
    - {name: metrics, port: 8080, protocol: TCP, targetPort: 8080}
    - {name: health, port: 8082, protocol: TCP, targetPort: 8082}
