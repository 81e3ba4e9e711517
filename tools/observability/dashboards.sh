#!/bin/sh
# Tests the dashboards: renders them, checks their structure, and that every query is valid and asks for metrics that somebody exports.
#
# Variables: VIRTPILOT and PROMTOOL (the programs), ASSETS (the folder of the asset pack). Needs Go.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
VIRTPILOT=${VIRTPILOT:-virtpilot}
PROMTOOL=${PROMTOOL:-promtool}
ASSETS=${ASSETS:-$here/../../assets}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for asset in prometheus-alerts autopilot-dashboard descheduler-dashboard kubevirt-metrics-exporter-dashboard; do
    "$VIRTPILOT" render --assets-dir "$ASSETS" --facts "$here/facts.yaml" --asset "$asset" >"$work/$asset.yaml"
done
cd "$here/dashboards"
go run . "$here/../../docs/reference/metrics.md" "$work"/*.yaml >"$work/queries.rules"
"$PROMTOOL" check rules "$work/queries.rules"
