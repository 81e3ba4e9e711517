// The Go modules that foreign CRDs are read from. Only their files are used: nothing here is compiled.
module virtpilot/tools/crds

go 1.26.0

require (
	github.com/medik8s/fence-agents-remediation v0.8.0
	github.com/medik8s/node-healthcheck-operator v0.12.0
	github.com/medik8s/node-maintenance-operator v0.21.0
	github.com/metallb/metallb-operator v0.14.2
	github.com/openshift/api v0.0.0-20251015095338-264e80a2b6e7
	github.com/perses/perses-operator v0.4.0
	github.com/prometheus-operator/prometheus-operator v0.91.0
	github.com/rhobs/observability-operator v1.5.1
	github.com/vmware-tanzu/velero v1.18.3
)
