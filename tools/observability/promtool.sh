#!/bin/sh
# Tests the alerts: renders the PrometheusRule, checks its rules and runs alerts.test.yaml and alerts-days.test.yaml on them.
#
# Variables: VIRTPILOT and PROMTOOL (the programs), ASSETS (the folder of the asset pack).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
VIRTPILOT=${VIRTPILOT:-virtpilot}
PROMTOOL=${PROMTOOL:-promtool}
ASSETS=${ASSETS:-$here/../../assets}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$VIRTPILOT" render --assets-dir "$ASSETS" --facts "$here/facts.yaml" --asset prometheus-alerts >"$work/rule.yaml"
# What is below spec is a rule file of Prometheus.
sed -n '/^spec:$/,$p' "$work/rule.yaml" | sed -e 1d -e 's/^  //' >"$work/rules.yaml"
"$PROMTOOL" check rules "$work/rules.yaml"

# Every alert has a test in which it fires, and a runbook.
for alert in $(sed -n 's/^ *- alert: //p' "$work/rules.yaml"); do
    if ! grep -q "exp_alerts: # $alert fires" "$here/alerts.test.yaml" "$here/alerts-days.test.yaml"; then
        echo "error: no test in which $alert fires" >&2
        exit 1
    fi
    if ! [ -s "$here/../../docs/runbooks/$alert.md" ]; then
        echo "error: $alert has no runbook" >&2
        exit 1
    fi
done

cp "$here"/alerts*.test.yaml "$work/"
"$PROMTOOL" test rules "$work/alerts.test.yaml" "$work/alerts-days.test.yaml"
