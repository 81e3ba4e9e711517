# Perses dashboards in the console, and the detection of incidents if it is asked for. The part spec.monitoring.acm belongs to Advanced
# Cluster Management and is not touched.
{{- $crd := "uiplugins.observability.openshift.io" }}
{{- $incidents := dig "platform.kubevirt.io/enable-incident-detection" "" .HCO.GetAnnotations | trim | lower }}
{{- if not (has $incidents (list "" "true" "false")) }}
{{- fail "annotation platform.kubevirt.io/enable-incident-detection of the HyperConverged: write true or false" }}
{{- end }}
{{- /* clusterHealthAnalyzer has replaced incidents, which is deprecated. */}}
{{- $analyzer := "" }}
{{- if eq $incidents "true" }}
{{- if crdHasField $crd "spec.monitoring.clusterHealthAnalyzer" }}{{ $analyzer = "clusterHealthAnalyzer" }}
{{- else if crdHasField $crd "spec.monitoring.incidents" }}{{ $analyzer = "incidents" }}
{{- end }}
{{- end }}
{{- $perses := crdHasField $crd "spec.monitoring.perses" }}
{{- if not (or $perses $analyzer) }}
{{- notApplicable "the installed Cluster Observability Operator offers no Perses dashboards; update it" }}
{{- end }}
apiVersion: observability.openshift.io/v1alpha1
kind: UIPlugin
metadata:
  name: monitoring
spec:
  type: Monitoring
  monitoring:
{{- if $perses }}
    perses:
      enabled: true
{{- end }}
{{- if $analyzer }}
    {{ $analyzer }}:
      enabled: true
{{- end }}
