#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# monitoring.sh ROOT: alert rules fire when they should (promtool), and rules and dashboard name only metrics that muster has.
set -euo pipefail
cd "$1"
bad=0
for metric in $(grep -ohE '\bmuster_[a-z_]+\b' packaging/monitoring/muster.rules.yml packaging/monitoring/muster-dashboard.json | sort -u); do
  grep -q "out.family(\"$metric\"" api/metrics.cc || { echo "no metric $metric in api/metrics.cc"; bad=1; }
done
python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert len({p["id"] for p in d["panels"]}) == len(d["panels"]) >= 9' packaging/monitoring/muster-dashboard.json
# States that the rules name.
for state in $(grep -o 'state=~"[^"]*"' packaging/monitoring/muster.rules.yml | sed 's/.*"\(.*\)"/\1/' | tr '|' ' '); do
  grep -q "\"$state\"" lifecycle/model/node_state.cc || { echo "no node is ever $state"; bad=1; }
done
command -v promtool >/dev/null || { echo "no promtool here (Debian: prometheus): rules were not run"; [ $bad = 0 ] && exit 77; exit 1; }
promtool check rules packaging/monitoring/muster.rules.yml
cd packaging/monitoring
promtool test rules muster.rules_test.yml
exit $bad
