#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# opensm_unit.sh FOLDER [SUITE]: the unit of OpenSM under systemd as PID 1, over ibsim (its library is preloaded by a drop-in, the port is the only
# thing that is simulated): asked by user muster it becomes the master of the fabric, its log is read by that user, and it ends with the service
# and not with who has asked.
set -euo pipefail
packages=$1 suite=${2:-bookworm}
. "$(dirname "$0")/clean_debian.sh"
with='opensm ibsim-utils'
install_packages muster muster-agent muster-checks
library=$(chroot "$root" sh -c "ibsim-run sh -c 'echo \$LD_PRELOAD'")
mkdir -p "$root/etc/systemd/system/muster-subnet-manager.service.d"
# ibsim's library makes a folder in /tmp, and speaks by sockets of its own.
printf '[Service]\nEnvironment=LD_PRELOAD=%s IBSIM_SOCKNAME=test SIM_HOST=H-00000\nPrivateNetwork=no\n' "$library" >"$root/etc/systemd/system/muster-subnet-manager.service.d/simulator.conf"
{ probe_begins; cat <<'PROBE'; } >"$root/usr/local/bin/probe"
cat >/ask <<'PERL'
use IO::Socket::UNIX;
my $line = IO::Socket::UNIX->new(Peer => "/run/muster-units/opensm") or die "cannot connect: $!\n";
print $line $ARGV[0], "\n";
$line->flush;
print scalar <$line>;
PERL
chmod 644 /ask
ask() { runuser -u muster -- perl /ask "$1" >/answer 2>&1; }
cat >/net <<'NET'
Switch 8 "S-00000"
[1] "H-00000"[1]
[2] "H-00001"[1]

Hca 1 "H-00000"
[1] "S-00000"[1]

Hca 1 "H-00001"
[1] "S-00000"[2]
NET
IBSIM_SOCKNAME=test ibsim -s /net >/ibsim.out 2>&1 </dev/null &
guid() { IBSIM_SOCKNAME=test SIM_HOST=H-00000 ibsim-run ibstat -p 2>/dev/null; }
until_true sh -c '[ -s /ibsim.out ]'
own=/var/lib/muster-opensm
port=$(sed -n 's/.*H-00000.*portguid=*\s*\(0x[0-9a-f]*\).*/\1/p' /ibsim.out | head -n 1)
[ -n "$port" ] || port=0x0000000000100001
conf="guid $port\\nconsole off\\nlog_file $own/opensm.log\\ndump_files_dir $own\\npartition_config_file $own/partitions.conf\\nforce_log_flush TRUE\\n"
start="{\"start\": {\"opensm.conf\": \"$conf\", \"partitions.conf\": \"Default=0x7fff, ipoib : ALL=limited, SELF=full ;\\n\"}}"
ask "$start"
check 'it starts' grep -q '"pid"' /answer
master() { runuser -u muster -- grep -qs "SUBNET UP" $own/opensm.log; }
until_true master && echo 'ok: it is the master of the fabric, and user muster reads its log'
check 'with a user of its own' sh -c '[ "$(ps -o user:32= -C opensm)" = muster-opensm ]'
check 'without a capability' sh -c '[ $(grep -cE "^Cap(Inh|Prm|Eff|Bnd|Amb):.0000000000000000" /proc/$(pgrep -x opensm)/status) = 5 ]'
check 'it sees neither state nor secrets' sh -c 'at=/proc/$(pgrep -x opensm)/root; [ -z "$(ls -A $at/var/lib/muster)" ] && [ -z "$(ls -A $at/etc/muster)" ]'
old=$(pgrep -x opensm)
ask '{"signal": "hup"}'
check 'it is told to read again' grep -q done /answer
check 'who asked has gone, it runs' kill -0 "$old"
for evil in 'event_plugin_name x' 'console socket' 'log_file /tmp/x'; do
  ask "{\"start\": {\"opensm.conf\": \"$conf$evil\\n\", \"partitions.conf\": \"\"}}"
  check "the unit refuses $evil" grep -q '"error"' /answer
done
ask "$start"
until_true master
# The service ends, killed or stopped: so does it.
a_site
check 'the service starts' systemctl start muster-server
until_true serves
ask "$start"
running=$(pgrep -x opensm)
check 'it runs beside the service' [ -n "$running" ]
kill -KILL "$(pid_of muster-server)"
gone() { [ -n "$running" ] && ! kill -0 "$running" 2>/dev/null; }
until_true gone && echo 'ok: it ends with a service that is killed'
until_true serves
ask "$start"
running=$(pgrep -x opensm)
check 'it runs again' [ -n "$running" ]
systemctl stop muster-server
until_true gone && echo 'ok: it ends with a service that is stopped'
check 'exposure of at most 2.5' systemd-analyze security --threshold=25 --no-pager muster-subnet-manager.service
{ journalctl --no-pager -u muster-subnet-manager -u muster-server | tail -n 60; cat /ibsim.out; } >/journal.opensm
echo PROBE-DONE
PROBE
boot_probe
