#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# signer_unit.sh FOLDER PACKAGING [SUITE], with the built programs in FOLDER: the signer's unit under systemd as PID 1, without the packages: a state whose keys openssl has made is
# given to the service's user and its keys to the signer's, which signs for that user alone, with its whole sandbox, and again when it is killed.
set -euo pipefail
built=$1 packaging=$2 suite=${3:-bookworm} no_packages=1
packages=
. "$(dirname "$0")/clean_debian.sh"
chroot "$root" sh -c 'export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq --no-install-recommends systemd-sysv dbus iproute2 openssl' >"$work/apt" 2>&1 || { tail -20 "$work/apt"; exit 1; }
mkdir -p "$root/usr/lib/muster"
cp "$built/muster-signer" "$built/muster" "$root/usr/lib/muster"
ln -s ../lib/muster/muster "$root/usr/bin/muster"
install "$packaging/systemd/own-state" "$root/usr/lib/muster"
cp "$packaging"/systemd/muster-signer.* "$root/usr/lib/systemd/system"
cp "$packaging/systemd/muster.sysusers" "$root/usr/lib/sysusers.d/muster.conf"
# Libraries of this machine, beside the program: the Debian in there may be another one.
for library in $(ldd "$built/muster-signer" "$built/muster" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p'); do
  case $library in */libc.so* | */libm.so* | */libpthread* | */ld-linux*) ;; *) cp -n "$library" "$root/usr/lib/muster/" ;; esac
done
echo /usr/lib/muster >"$root/etc/ld.so.conf.d/muster.conf"
install -D -m 0644 "$packaging/examples/cluster.yaml" "$root/usr/share/doc/muster/examples/cluster.yaml"
chroot "$root" ldconfig
mkdir -p "$root/var/lib/muster/keys" "$root/var/lib/muster/ca" "$root/etc/muster"
(
  cd "$root/var/lib/muster"
  umask 077
  openssl genpkey -algorithm ed25519 -out keys/signing.pem
  openssl pkey -in keys/signing.pem -pubout -out "$root/site.pub"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca/ca.key -out ca/ca.crt -days 3650 -subj '/O=muster certificate authority/CN=muster CA' \
    -addext basicConstraints=critical,CA:TRUE,pathlen:0 -addext keyUsage=critical,keyCertSign,cRLSign 2>/dev/null
  cp ca/ca.crt "$root/root.crt"
  chmod 0700 .
)
{ probe_begins; cat <<'PROBE'; } >"$root/usr/local/bin/probe"
cat >/ask <<'PERL'
use IO::Socket::UNIX;
$SIG{PIPE} = "IGNORE";
my $line = IO::Socket::UNIX->new(Peer => "/run/muster-units/signer") or die "cannot connect: $!\n";
print $line $ARGV[0], "\n";
$line->flush;
print scalar <$line>;
PERL
chmod 644 /ask
ask() { runuser -u muster -- perl /ask "$1" >/answer 2>&1; }
sums() { find /var/lib/muster /var/lib/muster-signer -name ca.key -o -name signing.pem 2>/dev/null | xargs sha256sum | sed 's: .*/: :' | sort; }
check 'users' systemd-sysusers /usr/lib/sysusers.d/muster.conf
systemctl daemon-reload
sums >/sums.before
check 'the state and its keys get their owners' /usr/lib/muster/own-state
cp /said /moved
check 'it says which' sh -c 'grep -q "keys/signing.pem is the signer.s now" /moved && grep -q "ca/ca.key is the signer.s now" /moved'
sums >/sums.after
check 'the same keys' cmp /sums.before /sums.after
check 'a second run says nothing' sh -c '[ -z "$(/usr/lib/muster/own-state 2>&1)" ]'
check 'the service cannot read them' sh -c '! runuser -u muster -- cat /var/lib/muster-signer/ca/ca.key && ! runuser -u muster -- ls /var/lib/muster-signer'
check 'nothing in the state is anybody elses' sh -c '[ -z "$(find /var/lib/muster ! -user muster)" ] && [ -z "$(find /var/lib/muster -name "*.key" -o -name signing.pem)" ]'
check 'nothing over there is anybody elses' sh -c '[ -z "$(find /var/lib/muster-signer ! -user muster-signer)" ] && [ "$(stat -c %a /var/lib/muster-signer)" = 700 ]'
check 'socket' systemctl start muster-signer.socket
check 'for the service alone' sh -c '[ "$(stat -c "%U:%G %a" /run/muster-units/signer)" = "muster:muster 600" ]'
request=$(openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /node.key -subj /CN=x 2>/dev/null | sed ':a;N;$!ba;s/\n/\\n/g')
order="{\"certify\":\"agent\",\"name\":\"gpu001\",\"names\":[],\"hours\":24,\"request\":\"$request\\n\",\"ca\":\"\"}"
pem() { sed 's/.*"certificate":"//; s/"}.*//; s/\\n/\n/g' /answer; }
ask "$order"
pem >/leaf.crt
check 'it signs' openssl verify -x509_strict -CAfile /root.crt -purpose sslclient /leaf.crt
signer=$(pid_of muster-signer.service)
check 'as a user of its own' sh -c "[ \$(stat -c %U /proc/$signer) = muster-signer ]"
check 'without a capability' sh -c "[ \$(grep -cE '^Cap(Inh|Prm|Eff|Bnd|Amb):.0000000000000000' /proc/$signer/status) = 5 ]"
check 'with a system call filter' grep -q '^Seccomp:.2' /proc/$signer/status
check 'without new privileges' grep -q '^NoNewPrivs:.1' /proc/$signer/status
check 'without the network' sh -c "[ \$(nsenter -t $signer -n ip -o link | wc -l) = 1 ]"
check 'it sees no state' sh -c "at=/proc/$signer/root; [ -z \"\$(ls -A \$at/var/lib/muster)\" ]"
check 'it has no other socket than its own' sh -c "[ \$(ls -l /proc/$signer/fd | grep -c 'socket:') -le 3 ]"
check 'written down' sh -c 'grep -q "certificate kind=agent name=gpu001" /var/lib/muster-signer/signed.log && journalctl -u muster-signer --no-pager | grep -q "name=gpu001"'
check 'nobody else may ask' sh -c '! runuser -u daemon -- perl /ask "{\"public\": true}" 2>/dev/null | grep -q certificates'
perl /ask '{"public": true}' >/answer 2>&1
check 'not even root' grep -q 'may not ask' /answer
for evil in '{"certify":"ca","name":"x","names":[],"hours":1,"request":"x","ca":""}' '{"export":true}' '{"sign":"node-certificate","text":"x"}' "{\"certify\":\"agent\",\"name\":\"gpu001\",\"names\":[],\"hours\":876000,\"request\":\"$request\\n\",\"ca\":\"\"}" "{\"certify\":\"agent\",\"name\":\"muster\",\"names\":[],\"hours\":1,\"request\":\"$request\\n\",\"ca\":\"\"}"; do
  ask "$evil"
  check "refused: $(echo "$evil" | head -n 1 | cut -c 1-60)" grep -q '"error"' /answer
done
kill -KILL "$signer"
ask "$order"
pem >/again.crt
check 'killed, it signs again' openssl verify -CAfile /root.crt -purpose sslclient /again.crt
check 'with another serial' sh -c '[ "$(openssl x509 -in /leaf.crt -noout -serial)" != "$(openssl x509 -in /again.crt -noout -serial)" ]'
ask '{"rotate":"certificates"}'
check 'it rotates' grep -q 'BEGIN PUBLIC KEY.*BEGIN PUBLIC KEY' /answer
check 'and keeps the private half' sh -c '! grep -q PRIVATE /answer'
# What an operator does, as root, with the program itself.
mkdir -p /etc/muster/secrets
a_site
echo MUSTER_INVENTORY=/etc/muster/cluster.yaml >/etc/muster/muster.conf
systemctl restart muster-signer.service
check 'public halves are written again' /usr/lib/muster/own-state
ids() { muster key list | sed -n 's/.*certificates.*/&/p'; }
ids >/ids.rotating
check 'a plan: it makes what a site has, and its servers identity' sh -c 'muster plan --direct >/plan 2>&1; [ -s /var/lib/muster/muster.db ] && ls /var/lib/muster/run/identities/server-*.pem'
check 'doctor finds the signer' sh -c 'muster doctor --json | grep -q "holds the CA.s key"'
check 'a rotation ends' muster key rotate certificates --finish
check 'and begins' muster key rotate certificates
check 'and ends' muster key rotate certificates --finish
check 'still nothing of it in the state' sh -c '[ -z "$(find /var/lib/muster -name "*.key" -o -name signing.pem)" ] && [ -z "$(find /var/lib/muster ! -user muster)" ]'
echo 'correct horse battery' >/passphrase
install -d -o muster -m 0700 /srv/backup
chown muster /passphrase && chmod 600 /passphrase
check 'user muster makes no backup' sh -c '! runuser -u muster -- muster backup /srv/backup/a --passphrase-file /passphrase >/why 2>&1 && grep -q "as root" /why'
check 'root does' muster backup /srv/backup/b --passphrase-file /passphrase
sums >/sums.backup
ids >/ids.backup
muster key rotate certificates >/dev/null
check 'a restore' muster restore /srv/backup/b --replace --passphrase-file /passphrase
sums >/sums.restored
ids >/ids.restored
check 'brings the keys back to the signer' cmp /sums.backup /sums.restored
check 'whose they are' cmp /ids.backup /ids.restored
check 'and keeps those of before beside them' sh -c 'ls /var/lib/muster-signer/keys/signing.pem.before-*'
ask '{"public":true}'
check 'it signs with them at once' sh -c 'grep -q "$(muster key show certificates | sed -n 2p)" /answer'
muster plan --direct >/plan 2>&1
systemctl stop muster-signer.socket muster-signer.service
check 'doctor says that it is away' sh -c 'muster doctor --json | grep -q "systemctl enable --now muster-signer.socket"'
check 'a site looks at its nodes without it' sh -c 'muster plan --direct >/plan.away 2>&1; grep -q "because its BMC must answer" /plan.away'
check 'what has to be signed is refused with words' sh -c '! muster cert revoke node001 --reason dust >/why 2>&1 && grep -q "systemctl start muster-signer.socket" /why'
systemctl start muster-signer.socket
check 'and is signed when it is back' muster cert revoke node001 --reason dust
check 'exposure of at most 1.5' systemd-analyze security --threshold=15 --no-pager muster-signer.service
check 'nothing was refused to it' sh -c "! journalctl -u muster-signer --no-pager | grep -iE 'not permitted|permission denied|read-only file system'"
{ journalctl --no-pager -u muster-signer | tail -n 60; tail -n 30 /plan /plan.away /why; } >/journal.signer 2>&1
echo PROBE-DONE
PROBE
boot_probe
