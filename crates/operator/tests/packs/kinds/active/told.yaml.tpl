# Only when it is rendered its kind is known.
apiVersion: told.example/v1
kind: {{ .Params.kind }}
metadata:
  name: kinds-told
spec:
  mode: Old
