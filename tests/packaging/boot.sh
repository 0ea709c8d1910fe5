#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# boot.sh FOLDER [SUITE]: the packages in FOLDER in a Debian that systemd has started as PID 1 (systemd-nspawn, a network of its own): each service
# starts with its whole sandbox and without a capability, has DHCP served by the unit of dnsmasq, is started again when it is killed, and takes
# dnsmasq along when it ends, however it does. The unit refuses what would leave DHCP.
set -euo pipefail
packages=$1 suite=${2:-bookworm}
. "$(dirname "$0")/clean_debian.sh"
install_packages muster muster-agent muster-checks
{ probe_begins; cat <<'PROBE'; } >"$root/usr/local/bin/probe"
a_site
again() { now=$(pid_of "$1"); [ "$now" != 0 ] && [ "$now" != "$2" ] && serves; }
# Asks the unit of dnsmasq as a program that has taken the service over could: one line, one answer.
cat >/ask <<'PERL'
use IO::Socket::UNIX;
my $line = IO::Socket::UNIX->new(Peer => "/run/muster-units/dnsmasq") or die "cannot connect: $!\n";
print $line $ARGV[0], "\n";
$line->flush;
print scalar <$line>;
PERL
chmod 644 /ask
for name in muster-dnsmasq muster-subnet-manager muster-signer muster-build muster-fetch; do check "$name.socket waits" systemctl is-active $name.socket; done
for unit in muster-monitor muster-server; do
  check "$unit starts" systemctl start $unit
  until_true serves
  check "$unit: is user muster" sh -c "[ \$(ps -o user= -p $(pid_of $unit)) = muster ]"
  check "$unit: dnsmasq has a user of its own" sh -c '[ "$(ps -o user:32= -C dnsmasq | sort -u)" = muster-dnsmasq ]'
  check "$unit: no new privileges" sh -c "grep -q '^NoNewPrivs:.1' /proc/$(pid_of $unit)/status"
  check "$unit: no capability" sh -c "[ \$(grep -cE '^Cap(Inh|Prm|Eff|Bnd|Amb):.0000000000000000' /proc/$(pid_of $unit)/status) = 5 ]"
  # CAP_NET_BIND_SERVICE (10), CAP_NET_ADMIN (12), CAP_NET_RAW (13).
  check "$unit: dnsmasq's three" sh -c '[ $(grep -cE "^Cap(Inh|Prm|Eff|Bnd|Amb):.0000000000003400" /proc/$(pgrep -x dnsmasq)/status) = 5 ]'
  check "$unit: dnsmasq sees neither state nor secrets" sh -c 'at=/proc/$(pgrep -x dnsmasq)/root; [ -z "$(ls -A $at/var/lib/muster)" ] && [ -z "$(ls -A $at/etc/muster)" ] && [ -n "$(ls -A $at/var/lib/muster-dnsmasq)" ]'
  check "$unit: reads the leases" runuser -u muster -- test -r /var/lib/muster-dnsmasq/dnsmasq.leases
  check "$unit: doctor knows whose ports they are" sh -c '! muster doctor | grep -E "port (67|69) "'
  check "$unit: nobody else does" sh -c '! runuser -u daemon -- ls /var/lib/muster-dnsmasq'
  check "$unit: exposure of at most 2.5" systemd-analyze security --threshold=25 --no-pager $unit
  check "$unit: a system call filter" grep -q '^Seccomp:.2' /proc/$(pid_of $unit)/status
  if [ $unit = muster-server ]; then
    check 'socket' sh -c '[ "$(stat -c "%U:%G %a" /run/muster/api.sock)" = "muster:muster 660" ]'
  fi
  check "$unit: state is private" sh -c '[ "$(stat -c "%U %a" /var/lib/muster)" = "muster 700" ] && ! find /var/lib/muster/keys /var/lib/muster/ca -name "*.pem" -o -name "*.key" | xargs stat -c %a | grep -v 600'
  check "$unit: the CA's key and the one for certificates are the signer's alone" sh -c '[ ! -e /var/lib/muster/ca/ca.key ] && [ ! -e /var/lib/muster/keys/signing.pem ] && [ "$(stat -c "%U %a" /var/lib/muster-signer/ca/ca.key /var/lib/muster-signer/keys/signing.pem | sort -u)" = "muster-signer 600" ] && ! runuser -u muster -- ls /var/lib/muster-signer'
  check "$unit: a command of root works beside it" muster key list
  check "$unit: and nothing in the state is root's" sh -c '[ -z "$(find /var/lib/muster /var/cache/muster ! -user muster)" ]'
  # Another that asks while it serves.
  runuser -u muster -- perl /ask '{"start": {"dnsmasq.conf": "port=0\ninterface=wire\nbind-interfaces\n"}}' >/answer
  check "$unit: another muster of this host is refused" grep -q 'runs for another muster' /answer
  old=$(pid_of $unit)
  old_dnsmasq=$(pgrep -x dnsmasq)
  kill -KILL "$old"
  until_true again $unit "$old" && echo "ok: $unit is started again when it is killed"
  check "$unit: its dnsmasq has ended with it" sh -c "! kill -0 $old_dnsmasq"
  old_dnsmasq=$(pgrep -x dnsmasq)
  kill -KILL "$old_dnsmasq"
  anew() { now=$(pgrep -x dnsmasq) && [ "$now" != "$old_dnsmasq" ] && serves; }
  until_true anew && echo "ok: $unit: a dnsmasq that dies is started anew"
  systemctl kill -s KILL muster-dnsmasq.service
  old_dnsmasq=none
  until_true anew && echo "ok: $unit: and one whose unit dies"
  check "$unit stops" systemctl stop $unit
  until_true silent && echo "ok: its dnsmasq ends with $unit"
  journalctl -u $unit -u muster-dnsmasq --no-pager | tail -40 >/journal.$unit
  check "$unit: nothing was refused" sh -c "! journalctl -u $unit -u muster-dnsmasq --no-pager | grep -iE 'not permitted|permission denied|read-only file system'"
done
for unit in muster-dnsmasq muster-subnet-manager; do
  check "$unit: exposure of at most 2.5" systemd-analyze security --threshold=25 --no-pager $unit.service
done
conf='port=0\ninterface=wire\nbind-interfaces\n'
for evil in 'dhcp-script=/tmp/x' 'conf-dir=/tmp' 'dhcp-luascript=/tmp/x' 'log-facility=/tmp/x' 'tftp-root=/etc' 'dhcp-leasefile=/tmp/x' 'user=root' 'enable-dbus'; do
  runuser -u muster -- perl /ask "{\"start\": {\"dnsmasq.conf\": \"$conf$evil\n\"}}" >/answer
  check "the unit refuses $evil" grep -q '"error"' /answer
done
check 'and runs nothing then' sh -c '! pgrep -x dnsmasq'
check 'nobody else may ask' sh -c '! runuser -u daemon -- perl /ask "{\"stop\": true}"'
# Without the unit nobody serves, and it is said what to do.
systemctl stop muster-dnsmasq.service muster-dnsmasq.socket
systemctl mask -q muster-dnsmasq.socket
systemctl start --no-block muster-server
said() { journalctl -u muster-server --no-pager | grep -q 'systemctl enable --now muster-dnsmasq.socket'; }
until_true said && echo 'ok: without the unit it says what to do'
check 'and does not serve' silent
systemctl stop muster-server
systemctl unmask -q muster-dnsmasq.socket
systemctl start muster-server
until_true serves && echo 'ok: and serves when it is there again'
# A command of root, without a service.
systemctl stop muster-server
until_true silent
journalctl --no-pager | tail -60 >/journal.all
echo PROBE-DONE
PROBE
boot_probe
