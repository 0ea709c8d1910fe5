#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# boot.sh FOLDER [SUITE]: the packages in FOLDER in a Debian that systemd has started as PID 1 (systemd-nspawn, a network of its own): each unit
# starts with its whole sandbox, serves DHCP, is started again when it is killed, and takes its dnsmasq with it when it is stopped.
set -euo pipefail
packages=$1 suite=${2:-bookworm}
ls "$packages"/muster_*.deb >/dev/null 2>&1 || { echo "no packages in $packages: ./run package"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
command -v systemd-nspawn >/dev/null && command -v mmdebstrap >/dev/null || { echo "needs systemd-container and mmdebstrap"; exit 77; }
if [ -z "${IN_NAMESPACE:-}" ]; then
  exec env IN_NAMESPACE=1 unshare --mount --propagation private "$0" "$@"
fi
. "$(dirname "$0")/clean_debian.sh"
trap 'umount -l "$work/system" "$work" 2>/dev/null; rmdir "$work" 2>/dev/null || true' EXIT
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"
chroot "$root" sh -c 'export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq --no-install-recommends systemd-sysv dbus \
  /packages/muster_*.deb /packages/muster-agent_*.deb /packages/muster-checks_*.deb' >"$work/apt" 2>&1 || { tail -20 "$work/apt"; exit 1; }
cat >"$root/usr/local/bin/probe" <<'PROBE'
#!/bin/sh
exec >/probe.out 2>&1
until_true() { for i in $(seq 300); do "$@" && return 0; sleep 0.1; done; echo "FAILED: not within 30 s: $*"; return 1; }
check() { what=$1; shift; if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; fi; }
ip link add wire type veth peer name far
ip link set wire up
ip link set far up
ip address add 10.20.0.1/16 dev wire
cp /usr/share/doc/muster/examples/cluster.yaml /etc/muster/
(umask 077; echo secret >/etc/muster/secrets/bmc)
serves() { ss -lunH 'sport = :67' | grep -q .; }
silent() { ! serves; }
pid_of() { systemctl show -p MainPID --value "$1"; }
again() { now=$(pid_of "$1"); [ "$now" != 0 ] && [ "$now" != "$2" ] && serves; }
for unit in muster-monitor muster-server; do
  if [ $unit = muster-server ] && ! muster --help | grep -qw server; then echo "not looked at: $unit (this muster has no server)"; continue; fi
  check "$unit starts" systemctl start $unit
  until_true serves
  check "$unit: is user muster" sh -c "[ \$(ps -o user= -p $(pid_of $unit)) = muster ]"
  check "$unit: dnsmasq is no root" sh -c '[ "$(ps -o user= -C dnsmasq | sort -u)" = muster ]'
  check "$unit: no new privileges" sh -c "grep -q '^NoNewPrivs:.1' /proc/$(pid_of $unit)/status"
  # CAP_NET_BIND_SERVICE (10), CAP_NET_ADMIN (12), CAP_NET_RAW (13).
  check "$unit: three capabilities" sh -c "[ \$(grep -cE '^Cap(Inh|Prm|Eff|Bnd|Amb):.0000000000003400' /proc/$(pid_of $unit)/status) = 5 ]"
  check "$unit: exposure of at most 2.5" systemd-analyze security --threshold=25 --no-pager $unit
  check "$unit: a system call filter" grep -q '^Seccomp:.2' /proc/$(pid_of $unit)/status
  if [ $unit = muster-server ]; then
    check 'socket' sh -c '[ "$(stat -c "%U:%G %a" /run/muster/api.sock)" = "muster:muster 660" ]'
  fi
  check "$unit: state is private" sh -c '[ "$(stat -c "%U %a" /var/lib/muster)" = "muster 700" ] && ! find /var/lib/muster/keys /var/lib/muster/ca -name "*.pem" -o -name "*.key" | xargs stat -c %a | grep -v 600'
  check "$unit: a command of root works beside it" muster key list
  check "$unit: and nothing in the state is root's" sh -c '[ -z "$(find /var/lib/muster /var/cache/muster ! -user muster)" ]'
  old=$(pid_of $unit)
  kill -KILL "$old"
  until_true again $unit "$old" && echo "ok: $unit is started again when it is killed"
  check "$unit stops" systemctl stop $unit
  until_true silent && echo "ok: its dnsmasq ends with $unit"
  journalctl -u $unit --no-pager | tail -40 >/journal.$unit
  check "$unit: nothing was refused" sh -c "! journalctl -u $unit --no-pager | grep -iE 'not permitted|permission denied|read-only file system'"
done
echo PROBE-DONE
PROBE
chmod +x "$root/usr/local/bin/probe"
. "$(dirname "$0")/boot_systemd.sh"
if grep -q FAILED "$root/probe.out" 2>/dev/null; then tail -n 40 "$root"/journal.*; fi
cat "$root/probe.out"
grep -q PROBE-DONE "$root/probe.out" && ! grep -q FAILED "$root/probe.out"
