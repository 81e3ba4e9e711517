# Makes operations that are in flight visible: the controller of ifo.kubevirt.io records an InFlightOperation while a rule holds for an
# object. The rules of all sets are in rule-sets.yaml.
{{- $set := index (readAsset "inflightoperations/rule-sets.yaml" | fromYaml) .Params.set }}
{{- $target := splitList "/" $set.target }}
{{- $version := index $target 1 }}
{{- if eq $version "served" }}{{ $version = .HCO.GetAPIVersion | splitList "/" | last }}{{ end }}
{{- $rules := list }}
{{- if hasKey $set "available_progressing" }}
{{- $third := $set.available_progressing }}
{{- range $row := list
      (list "Deploying" "False" "True" "False")
      (list "Reconciling" "True" "True" "False")
      (list "ReconcilingDegraded" "True" "True" "True")
      (list "Healing" "False" "True" "True")
      (list "Failing" "False" "False" "True") }}
{{- $when := list (printf "Available=%s" (index $row 1)) (printf "Progressing=%s" (index $row 2)) (printf "%s=%s" $third (index $row 3)) }}
{{- $rules = append $rules (dict "operation" (index $row 0) "when" $when) }}
{{- end }}
{{- end }}
{{- range $phase := dig "phases" list $set }}
{{- $rules = append $rules (dict "operation" $phase "phase" (list $phase)) }}
{{- end }}
{{- $rules = concat $rules (dig "rules" list $set) }}
{{- $field := dig "phase_field" "phase" $set }}
apiVersion: ifo.kubevirt.io/v1alpha1
kind: OperationRuleSet
metadata:
  name: {{ .Params.set }}
spec:
  component: {{ $set.component }}
  {{- if hasKey $set "correlation" }}
  labels:
    ifo.kubevirt.io/correlation-group: {{ $set.correlation }}
    ifo.kubevirt.io/correlation-role: {{ $set.role }}
  {{- end }}
  target:
    group: {{ index $target 0 }}
    version: {{ $version }}
    resource: {{ index $target 2 }}
  rules:
  {{- range $rule := $rules }}
    {{- $terms := list }}
    {{- if hasKey $rule "phase" }}
    {{- $value := printf "object.status.%s" $field }}
    {{- $test := printf "%s == '%s'" $value (first $rule.phase) }}
    {{- if gt (len $rule.phase) 1 }}{{ $test = printf "%s in ['%s']" $value (join "', '" $rule.phase) }}{{ end }}
    {{- $terms = list "has(object.status)" (printf "has(%s)" $value) $test }}
    {{- end }}
    {{- if hasKey $rule "when" }}
    {{- $terms = append $terms "has(object.status)" }}
    {{- $terms = append $terms "has(object.status.conditions)" }}
    {{- range $condition := $rule.when }}
    {{- $not := ternary "!" "" (contains "!=" $condition) }}
    {{- $pair := splitList "=" (replace "!=" "=" $condition) }}
    {{- $terms = append $terms (printf "%sobject.status.conditions.exists(c, c.type == '%s' && c.status == '%s')" $not (index $pair 0) (index $pair 1)) }}
    {{- end }}
    {{- end }}
    {{- if hasKey $rule "cel" }}
    {{- $terms = append $terms $rule.cel }}
    {{- end }}
    - operation: {{ $rule.operation }}
      expression: {{ join " && " $terms | quote }}
  {{- end }}
