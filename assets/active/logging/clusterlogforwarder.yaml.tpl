# Forwards logs to the LokiStack and drops what nobody reads.
{{- $audit := dig "platform.kubevirt.io/enable-audit-logging" "" .HCO.GetAnnotations | trim | lower }}
{{- if not (has $audit (list "" "true" "false")) }}
{{- fail "annotation platform.kubevirt.io/enable-audit-logging of the HyperConverged: write true or false" }}
{{- end }}
{{- /* The same condition as that of the LokiStack: without it there is nowhere to forward to. */}}
{{- if not (or .Topology.IsAWS .Topology.IsAzure .Topology.IsGCP .Topology.IsVSphere .Topology.IsOpenStack (dig "platform.kubevirt.io/logging-storage-class" "" .HCO.GetAnnotations | trim)) }}
{{- notApplicable "the LokiStack needs a storage class first; name one in the annotation platform.kubevirt.io/logging-storage-class of the HyperConverged" }}
{{- end }}
apiVersion: observability.openshift.io/v1
kind: ClusterLogForwarder
metadata:
  name: instance
  namespace: openshift-logging
spec:
  serviceAccount:
    name: collector
  outputs:
    - name: lokistack
      type: lokiStack
      lokiStack:
        target:
          name: logging-loki
          namespace: openshift-logging
        authentication:
          token:
            from: serviceAccount
      tls:
        ca:
          configMapName: openshift-service-ca.crt
          key: service-ca.crt
  # A record is dropped if all conditions of one test hold. All of them are positive matches, so that a record without the field is kept.
  filters:
    - name: drop-debug
      type: drop
      drop:
        - test:
            - field: .level
              matches: ^(?i)(debug|trace)$
    - name: drop-probes
      type: drop
      drop:
        # An access log line of a health probe that was answered with a status of 2xx.
        - test:
            - field: .message
              matches: '"(GET|HEAD) /(healthz?|livez|readyz|live|ready)([/?][^" ]*)? HTTP/[0-9.]+" 2[0-9][0-9]( |$)'
{{- if eq $audit "true" }}
    # Each request is recorded at several stages; the last one has the response.
    - name: drop-audit-stages
      type: drop
      drop:
        - test:
            - field: .stage
              matches: ^(RequestReceived|ResponseStarted)$
    # What the platform does by itself, many times a second.
    - name: drop-audit-system
      type: drop
      drop:
        - test:
            - field: .user.username
              matches: ^system:(serviceaccount:(openshift-[^:]*|kube-system):.*|node:.*|apiserver|kube-controller-manager|kube-scheduler)$
    - name: drop-audit-watch
      type: drop
      drop:
        - test:
            - field: .verb
              matches: ^watch$
{{- end }}
  pipelines:
    - name: infrastructure
      inputRefs: [infrastructure]
      filterRefs: [drop-debug, drop-probes]
      outputRefs: [lokistack]
    - name: application
      inputRefs: [application]
      filterRefs: [drop-probes]
      outputRefs: [lokistack]
{{- if eq $audit "true" }}
    - name: audit
      inputRefs: [audit]
      filterRefs: [drop-audit-stages, drop-audit-system, drop-audit-watch]
      outputRefs: [lokistack]
{{- end }}
