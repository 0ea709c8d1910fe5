#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# capabilities.sh MUSTER PACKAGING monitor|server: that command without systemd, as a user with the capabilities of dnsmasq's unit, in a network
# namespace: it starts dnsmasq itself, and ends one that was left.
set -euo pipefail
muster=$1 packaging=$2 command=$3
[ "$(id -u)" = 0 ] || { echo "needs root for network namespaces"; exit 77; }
if [ -z "${IN_NAMESPACE:-}" ]; then
  unshare --net true 2>/dev/null || { echo "network namespaces cannot be made here"; exit 77; }
  exec env IN_NAMESPACE=1 unshare --net --mount --propagation private "$0" "$@"
fi
folder=$(mktemp -d)
mount -t tmpfs run /run # its own /run/muster
mkdir -p /run/muster
monitor=""
finish() {
  [ -z "$monitor" ] || kill -KILL "$monitor" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
ip link set lo up
ip link add wire type veth peer name end
ip link set wire up
ip link set end up
ip addr add 10.20.0.1/16 dev wire

unit=$packaging/systemd/muster-dnsmasq.service
set_of() { echo "-all$(sed -n "s/^$1=//p" "$unit" | tr ' ' '\n' | sed 's/^CAP_/,+/' | tr 'A-Z' 'a-z' | tr -d '\n')"; }
bounding=$(set_of CapabilityBoundingSet) ambient=$(set_of AmbientCapabilities)
user=$(id -u daemon) # as good as muster's, which this machine need not have
mask=$(sed -n 's/^UMask=//p' "$packaging/systemd/muster-$command.service")
cp "$packaging/examples/cluster.yaml" "$folder"
mkdir "$folder/secrets"
(umask 077; echo secret >"$folder/secrets/bmc")
export MUSTER_CONF= MUSTER_INVENTORY=$folder/cluster.yaml MUSTER_STATE=$folder/state MUSTER_CACHE=$folder/cache MUSTER_LAB=$folder/no-lab MUSTER_STORE=
mkdir -m 0700 "$folder/state"
mkdir "$folder/cache"
chown -R "$user:$user" "$folder/secrets" "$folder/state" "$folder/cache" /run/muster
chmod 755 "$folder" # the state lies in one that others may pass
start() {
  (umask "$mask"; exec setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps "$ambient" --ambient-caps "$ambient" --bounding-set "$bounding" --no-new-privs "$muster" "$command") >"$folder/out" 2>&1 &
  monitor=$!
}
until_true() { # COMMAND…: another process works; looking from time to time is all there is
  local tries
  for tries in $(seq 600); do
    "$@" && return
    kill -0 "$monitor" 2>/dev/null || { echo "the monitor has ended:"; cat "$folder/out"; exit 1; }
    sleep 0.1
  done
  echo "not within a minute: $*"; ls -lR "$folder/state"; ss -lunp; cat "$folder"/state/muster.log "$folder"/state/run/netboot/*.log
  cat "$folder/out"
  exit 1
}
pid_of_dnsmasq() { awk '{print $1; exit}' "$folder/state/run/netboot/dnsmasq.pid" 2>/dev/null; }
serves() { [ -n "$(pid_of_dnsmasq)" ] && ss -lunH 'sport = :67' | grep -q .; }
start
until_true serves
answers() { [ "$command" = monitor ] || find /run/muster "$folder/state" -name api.sock -type s | grep -q .; }
until_true answers
dnsmasq=$(pid_of_dnsmasq)
served_as=$(sed -n 's/^Uid:.\([0-9]*\).*/\1/p' "/proc/$dnsmasq/status")
echo "dnsmasq $dnsmasq serves as user $served_as, with $bounding"
[ "$served_as" = "$user" ]
# What systemd does to the whole control group, only the monitor gets here: the next one ends the dnsmasq that was left.
kill -KILL "$monitor"
wait "$monitor" || true
start
serves_anew() { serves && [ "$(pid_of_dnsmasq)" != "$dnsmasq" ] && ! kill -0 "$dnsmasq" 2>/dev/null; }
until_true serves_anew
kill -KILL "$monitor" "$(pid_of_dnsmasq)"
wait "$monitor" || true
monitor=""
! grep -iE 'permission|not permitted|denied' "$folder/out" || { echo "something was refused"; exit 1; }
