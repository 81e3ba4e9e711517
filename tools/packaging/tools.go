//go:build tools

package tools

import (
	_ "github.com/operator-framework/api/cmd/operator-verify"
	_ "helm.sh/helm/v4/cmd/helm"
)
