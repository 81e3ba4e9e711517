apiVersion: perses.dev/v1alpha2
kind: PersesDatasource
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  client:
    tls:
      enable: true
      caCert:
        type: configmap
        name: serving-ca
        namespace: {{ .HCO.GetNamespace }}
        certPath: service-ca.crt
  config:
    display:
      name: {{ .Params.display | quote }}
    default: false
    plugin:
      kind: PrometheusDatasource
      spec:
        proxy:
          kind: HTTPProxy
          spec:
            url: https://{{ .Params.host }}.openshift-monitoring.svc.cluster.local:9091
            secret: {{ .Params.name }}-secret
