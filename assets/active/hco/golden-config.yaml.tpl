# The HyperConverged object itself. It is applied first and then read by the other assets.
#
# It has no opinion of its own about spec: the defaults of the HCO are good, and every field listed here would be taken out of the hands
# of the administrator. The only field is one that the user asks for by annotation; removing the annotation returns it to the HCO.
{{- $aaq := dig "platform.kubevirt.io/enable-aaq" "" .HCO.GetAnnotations | trim | lower }}
{{- if not (has $aaq (list "" "true" "false")) }}
{{- fail "annotation platform.kubevirt.io/enable-aaq of the HyperConverged: write true or false" }}
{{- end }}
apiVersion: {{ .HCO.GetAPIVersion }}
kind: HyperConverged
metadata:
  name: kubevirt-hyperconverged
  namespace: {{ .HCO.GetNamespace }}
{{- if eq $aaq "true" }}
spec:
{{- if hasSuffix "/v1beta1" .HCO.GetAPIVersion }}
  enableApplicationAwareQuota: true
{{- else }}
  deployment:
    applicationAwareConfig:
      enable: true
{{- end }}
{{- end }}
