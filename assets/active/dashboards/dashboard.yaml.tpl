# A dashboard; its rows and panels are in the data file that the parameter "dashboard" names. The file is not a template, because queries
# and legends have braces of their own.
#
#   title, duration, datasource   of the dashboard
#   variables                     name, title, and either label and of (the values of a label of some series) or values; the first of
#                                 `values` is the default
#   rows                          title, closed (optional), panels, and:
#   latency                       in a row: the base name of a histogram in seconds, the labels `by`, the selector and the legend; gives four panels
#   panel                         title, kind (time, stat, table), unit, width and height (of 24 columns; optional), description (optional), hide
#                                 (columns of a table), queries: query and legend
{{- $board := readAsset (printf "dashboards/%s.yaml" .Params.dashboard) | fromYaml }}
{{- $kinds := dict "time" "TimeSeriesChart" "stat" "StatChart" "table" "Table" }}
{{- $rows := list }}
{{- range $row := $board.rows }}
{{- $panels := dig "panels" list $row }}
{{- if hasKey $row "latency" }}
{{- $of := $row.latency }}
{{- $by := join ", " $of.by }}
{{- range $limit := list (list "0.01" "10 ms") (list "0.1" "100 ms") (list "1(.0)?" "1 s") }}
{{- $fast := printf "sum by (%s) (rate(%s_bucket{%s, le=~\"%s\"}[$interval]))" $by $of.metric $of.selector (index $limit 0) }}
{{- $all := printf "sum by (%s) (rate(%s_count{%s}[$interval]))" $by $of.metric $of.selector }}
{{- $query := dict "query" (printf "topk($topk, 1 - %s / (%s > 0))" $fast $all) "legend" $of.legend }}
{{- $panels = append $panels (dict "title" (printf "I/O slower than %s" (index $limit 1)) "kind" "time" "unit" "percent-decimal" "queries" (list $query)) }}
{{- end }}
{{- $quantile := printf "topk($topk, histogram_quantile(0.99, sum by (%s, le) (rate(%s_bucket{%s}[$interval]))))" $by $of.metric $of.selector }}
{{- $panels = append $panels (dict "title" "99th percentile (as exact as the buckets)" "kind" "time" "unit" "seconds" "queries" (list (dict "query" $quantile "legend" $of.legend))) }}
{{- end }}
{{- $rows = append $rows (dict "title" $row.title "open" (not (dig "closed" false $row)) "panels" $panels) }}
{{- end }}
apiVersion: perses.dev/v1alpha2
kind: PersesDashboard
metadata:
  name: {{ .Params.name }}
  namespace: {{ dig "namespace" .HCO.GetNamespace .Params }}
  labels:
    app.kubernetes.io/name: virt-platform-autopilot
    app.kubernetes.io/component: dashboard
spec:
  config:
    display:
      name: {{ $board.title | quote }}
    duration: {{ $board.duration }}
    {{- with dig "variables" list $board }}
    variables:
    {{- range $variable := . }}
      - kind: ListVariable
        spec:
          name: {{ $variable.name }}
          display:
            name: {{ $variable.title | quote }}
          {{- if hasKey $variable "values" }}
          allowAllValue: false
          allowMultiple: false
          defaultValue: {{ first $variable.values | quote }}
          plugin:
            kind: StaticListVariable
            spec:
              values:
              {{- range $value := $variable.values }}
                - {{ $value | quote }}
              {{- end }}
          {{- else }}
          allowAllValue: true
          allowMultiple: true
          customAllValue: ".*"
          defaultValue: $__all
          sort: alphabetical-asc
          plugin:
            kind: PrometheusLabelValuesVariable
            spec:
              datasource:
                kind: PrometheusDatasource
                name: {{ $board.datasource }}
              labelName: {{ $variable.label }}
              matchers:
              {{- range $matcher := $variable.of }}
                - {{ $matcher | quote }}
              {{- end }}
          {{- end }}
    {{- end }}
    {{- end }}
    panels:
    {{- range $r, $row := $rows }}
    {{- range $p, $panel := $row.panels }}
      panel-{{ $r }}-{{ $p }}:
        kind: Panel
        spec:
          display:
            name: {{ $panel.title | quote }}
            {{- if hasKey $panel "description" }}
            description: {{ $panel.description | quote }}
            {{- end }}
          plugin:
            kind: {{ index $kinds $panel.kind }}
            {{- if eq $panel.kind "time" }}
            spec:
              legend: {position: bottom, mode: table, values: [last]}
              yAxis:
                format: {unit: {{ dig "unit" "decimal" $panel }}}
              visual: {lineWidth: 1, areaOpacity: 0.1, connectNulls: false}
            {{- else if eq $panel.kind "stat" }}
            spec:
              calculation: last
              format: {unit: {{ dig "unit" "decimal" $panel }}}
            {{- else }}
            spec:
              density: compact
              columnSettings:
              {{- range $column := concat (list "timestamp") (dig "hide" list $panel) }}
                - {name: {{ $column }}, hide: true}
              {{- end }}
            {{- end }}
          queries:
          {{- range $query := $panel.queries }}
            - kind: TimeSeriesQuery
              spec:
                plugin:
                  kind: PrometheusTimeSeriesQuery
                  spec:
                    datasource:
                      kind: PrometheusDatasource
                      name: {{ $board.datasource }}
                    query: {{ $query.query | quote }}
                    {{- if hasKey $query "legend" }}
                    seriesNameFormat: {{ $query.legend | quote }}
                    {{- end }}
          {{- end }}
    {{- end }}
    {{- end }}
    layouts:
    {{- range $r, $row := $rows }}
      - kind: Grid
        spec:
          display:
            title: {{ $row.title | quote }}
            collapse:
              open: {{ $row.open }}
          items:
          {{- $x := 0 }}
          {{- $y := 0 }}
          {{- $tallest := 0 }}
          {{- range $p, $panel := $row.panels }}
          {{- $width := dig "width" 12 $panel }}
          {{- $height := dig "height" 8 $panel }}
          {{- if gt (add $x $width) 24 }}{{ $y = add $y $tallest }}{{ $x = 0 }}{{ $tallest = 0 }}{{ end }}
            - x: {{ $x }}
              "y": {{ $y }}
              width: {{ $width }}
              height: {{ $height }}
              content:
                $ref: "#/spec/panels/panel-{{ $r }}-{{ $p }}"
          {{- $x = add $x $width }}
          {{- $tallest = max $tallest $height }}
          {{- end }}
    {{- end }}
