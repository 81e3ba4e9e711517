apiVersion: perses.dev/v1alpha2
kind: PersesDashboard
metadata:
  name: {{ .Params.name }}
  namespace: {{ .HCO.GetNamespace }}
  labels:
    app.kubernetes.io/part-of: virtpilot-bench
spec:
  config:
    display:
      name: {{ .Params.display | quote }}
    duration: {{ .Params.duration }}
    variables:
{{- range list "node" "namespace" "interval" }}
      - kind: ListVariable
        spec:
          name: {{ . }}
          display:
            name: {{ . | title }}
          allowAllValue: true
          allowMultiple: true
          plugin:
            kind: PrometheusLabelValuesVariable
            spec:
              labelName: {{ . }}
              matchers:
                - kube_node_info{node!=""}
{{- end }}
    layouts:
{{- range $row, $subject := splitList "," .Params.subjects }}
      - kind: Grid
        spec:
          display:
            title: {{ $subject | title }}
            collapse:
              open: {{ eq $row 0 }}
          items:
{{- range $column, $percentile := list "50" "90" "99" }}
            - x: {{ mul 8 $column }}
              y: {{ mul 8 $row }}
              width: 8
              height: 8
              content:
                $ref: '#/spec/panels/{{ $subject }}_{{ $percentile }}'
{{- end }}
{{- end }}
    panels:
{{- range $subject := splitList "," .Params.subjects }}
{{- range $percentile := list "50" "90" "99" }}
      {{ $subject }}_{{ $percentile }}:
        kind: Panel
        spec:
          display:
            name: {{ $subject | title }}, {{ $percentile }}th percentile
            description: How long {{ $subject }} takes on each of the chosen nodes, seen over the chosen interval.
          plugin:
            kind: TimeSeriesChart
            spec:
              legend:
                mode: table
                position: bottom
                values: [mean, last, max]
              yAxis:
                format:
                  unit: seconds
                  decimalPlaces: 3
              visual:
                areaOpacity: 0.1
                lineWidth: 1.5
          queries:
            - kind: TimeSeriesQuery
              spec:
                plugin:
                  kind: PrometheusTimeSeriesQuery
                  spec:
                    datasource:
                      kind: PrometheusDatasource
                      name: {{ $.Params.datasource }}
                    seriesNameFormat: '{{ "{{node}}" }}'
                    query: |
                      histogram_quantile(0.{{ $percentile }}, sum by (node, le) (
                        rate(kubevirt_{{ $subject }}_seconds_bucket{node=~"$node",namespace=~"$namespace"}[$interval])
                      ))
{{- end }}
{{- end }}
