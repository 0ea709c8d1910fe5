#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs systemd-networkd with the files in $1 in the mount and network namespace that this script was
# started in, and writes to $2 what the kernel then has: addr.json, route4.json, route6.json.
# SWITCH: Ethernets whose other ends are one port channel of a switch that speaks LACP.
# $3…: the Ethernets, each made as one end of a veth pair whose other end (sw-NAME) is up.
set -euo pipefail
files=$1 out=$2
shift 2
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /etc/systemd/network
mkdir -p /run/systemd/netif/{links,leases,lldp} /run/systemd/network
chown -R systemd-network:systemd-network /run/systemd/netif
cp "$files"/* /etc/systemd/network/
ip link set lo up
for name in "$@"; do
  ip link add "$name" type veth peer name "sw-$name"
  ip link set "sw-$name" up
done
if [ -n "${SWITCH:-}" ]; then
  ip link add switch0 type bond mode 802.3ad lacp_rate fast miimon 100
  for name in $SWITCH; do
    ip link set "sw-$name" down
    ip link set "sw-$name" master switch0
  done
  ip link set switch0 up
fi
# Read-only: networkd then waits for no udev, which does not see into this namespace.
mount -t sysfs -o ro sysfs /sys
/lib/systemd/systemd-networkd >"$out/log" 2>&1 &
daemon=$!
links() { sed -n 's/^Name=//p' /etc/systemd/network/*.network | sort -u; }
configured() {
  for name in $(links); do
    [ -e "/sys/class/net/$name/ifindex" ] || return 1
    grep -qx 'ADMIN_STATE=configured' "/run/systemd/netif/links/$(cat "/sys/class/net/$name/ifindex")" || return 1
  done
}
joined() {
  for name in ${SWITCH:-}; do
    local bond
    bond=$(basename "$(readlink "/sys/class/net/$name/master")") || return 1
    grep -qvx '00:00:00:00:00:00' "/sys/class/net/$bond/bonding/ad_partner_mac" || return 1
    [ "$(cat "/sys/class/net/$name/bonding_slave/ad_aggregator_id")" = "$(cat "/sys/class/net/$bond/bonding/ad_aggregator")" ] || return 1
    [ "$(cat "/sys/class/net/$bond/carrier")" = 1 ] || return 1
  done
}
usable() { ! ip -6 addr show | grep -q tentative; }
end=$((SECONDS + 60))
until configured && joined && usable; do
  [ $SECONDS -lt $end ] && kill -0 $daemon || break
  read -rt 0.1 <> <(:) || true
done
ip -j -d addr show >"$out/addr.json"
ip -j route show >"$out/route4.json"
ip -j -6 route show >"$out/route6.json"
kill $daemon
wait $daemon || true
