#!/bin/sh
# Tests the OperationRuleSets: renders all of them and evaluates their expressions on the objects of operations.yaml.
#
# Variables: VIRTPILOT (the program), ASSETS (the folder of the asset pack). Needs Go.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
VIRTPILOT=${VIRTPILOT:-virtpilot}
ASSETS=${ASSETS:-$here/../../assets}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$VIRTPILOT" render --assets-dir "$ASSETS" --facts "$here/facts.yaml" >"$work/rendered.yaml"
cd "$here/cel"
go run . "$work/rendered.yaml" "$here/operations.yaml"
