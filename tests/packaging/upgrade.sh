#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# upgrade.sh FOLDER BEFORE [SUITE]: from the packages in BEFORE, whose services were root, to those in FOLDER, in a Debian that systemd has
# started as PID 1. The service of before works with a state; the upgrade gives that to user muster, also when it is killed half-way or run
# twice, and starts the service again; nothing of the state changes. A downgrade is refused; purge leaves the state.
set -euo pipefail
packages=$1 before=${2:-${MUSTER_PACKAGES_BEFORE:-}} suite=${3:-bookworm}
ls "$before"/muster_*.deb >/dev/null 2>&1 || { echo "no packages of the version before: name their folder (MUSTER_PACKAGES_BEFORE)"; exit 77; }
. "$(dirname "$0")/clean_debian.sh"
mkdir "$root/packages" "$root/before"
for package in muster muster-agent muster-checks; do
  cp "$packages/$package"_*.deb "$root/packages"
  # Of the same version where both were built from one version's tree: then BEFORE's counts as an older one.
  deb=$(ls "$before/$package"_*.deb)
  if [ "$(dpkg-deb -f "$deb" Version)" = "$(dpkg-deb -f "$packages"/"$package"_*.deb Version)" ]; then
    version=$(dpkg-deb -f "$deb" Version)
    dpkg-deb -R "$deb" "$work/unpacked"
    sed -i "s/^Version: .*/&~before/; s/(= $version)/(= $version~before)/g" "$work/unpacked/DEBIAN/control"
    dpkg-deb -Zxz -z0 --root-owner-group -b "$work/unpacked" "$root/before/$(basename "$deb")" >/dev/null
    rm -r "$work/unpacked"
  else
    cp "$deb" "$root/before"
  fi
done
chroot "$root" sh -c 'export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq --no-install-recommends systemd-sysv dbus \
  systemd-standalone-sysusers- /before/*.deb && apt-get install -y -qq --no-install-recommends --download-only /packages/*.deb' >"$work/apt" 2>&1 || { tail -20 "$work/apt"; exit 1; }
{ probe_begins; cat <<'PROBE'; } >"$root/usr/local/bin/probe"
a_site
rm -f /usr/sbin/policy-rc.d
roots() { find /var/lib/muster /var/cache/muster /run/muster ! -user muster; }
# Private halves, wherever they are: two of them become the signer's (docs/adr/0367).
sums() { find /var/lib/muster/keys /var/lib/muster/ca /var/lib/muster-signer -type f \( -name '*.pem' -o -name '*.key' \) -exec sha256sum {} + 2>/dev/null | sed 's:/.*/::' | sort; }
check 'the version before starts' systemctl start muster-server
until_true serves || { systemctl status --no-pager -l muster-server; tail -n 5 /var/lib/muster/muster.log; }
check 'as root, with a state of root' sh -c "[ \$(ps -o user= -p $(pid_of muster-server)) = root ] && [ \$(stat -c %U /var/lib/muster) = root ]"
muster key list >/keys.before
sums >/sums.before
(umask 077; echo 'a passphrase for the test' >/srv/passphrase)
check 'backup by the version before' muster backup /srv/before.muster --passphrase-file /srv/passphrase
# An operator's command that holds the state while the package is configured: nothing is given away under it.
sh -c 'exec 9</var/lib/muster/muster.db; exec sleep 600' &
holder=$!
check 'upgrade beside a command of root' apt-get install -y -qq --no-install-recommends /packages/*.deb
cp /said /upgrade.said
check 'it says which process' grep -q "process $holder works with it" /upgrade.said
check 'the state stays roots meanwhile' sh -c '[ $(stat -c %U /var/lib/muster) = root ]'
check 'the service does not start so' sh -c '! systemctl start muster-server'
kill $holder
# Killed half-way: the folder itself is root's still.
chown -h muster:muster /var/lib/muster/keys
check 'the service starts then' sh -c 'systemctl reset-failed muster-server; systemctl restart muster-server'
until_true serves || { systemctl status --no-pager -l muster-server; tail -n 5 /var/lib/muster/muster.log; }
check 'as user muster' sh -c "[ \$(ps -o user= -p $(pid_of muster-server)) = muster ]"
check 'it said what it did' sh -c "journalctl -b | grep -q 'were root.s and are muster.s now'"
check 'all is musters' sh -c '[ -z "$(find /var/lib/muster /var/cache/muster /run/muster ! -user muster)" ] && [ "$(stat -c "%U %a" /var/lib/muster)" = "muster 700" ]'
check 'the secrets are readable by it alone' sh -c '[ "$(stat -c "%U %a" /etc/muster/secrets/bmc)" = "muster 600" ] && [ "$(stat -c "%U:%G %a" /etc/muster/secrets)" = "root:muster 750" ]'
sums >/sums.after
check 'keys are as they were' cmp /sums.before /sums.after
muster key list >/keys.after
check 'a command of root says the same' cmp /keys.before /keys.after
check 'two keys are the signers' sh -c '[ "$(stat -c %U /var/lib/muster-signer/ca/ca.key /var/lib/muster-signer/keys/signing.pem | sort -u)" = muster-signer ] && [ ! -e /var/lib/muster/ca/ca.key ]'
check 'and leaves nothing of roots' sh -c '[ -z "$(find /var/lib/muster ! -user muster)" ]'
check 'a second run changes nothing' sh -c '[ -z "$(/usr/lib/muster/own-state 2>&1)" ]'
old=$(pid_of muster-server)
kill -KILL "$old"
again() { now=$(pid_of muster-server); [ "$now" != 0 ] && [ "$now" != "$old" ] && serves; }
until_true again && echo 'ok: started again when it is killed'
check 'a state of somebody else is left alone' sh -c 'systemctl stop muster-server; chown daemon /var/lib/muster; ! /usr/lib/muster/own-state && [ $(stat -c %U /var/lib/muster) = daemon ]; code=$?; chown muster /var/lib/muster; exit $code'
check 'a link instead of the state is refused' sh -c 'mv /var/lib/muster /srv/state && ln -s /srv/state /var/lib/muster; ! /usr/lib/muster/own-state; code=$?; rm /var/lib/muster; mv /srv/state /var/lib/muster; exit $code'
# An older version, and then all of it again in one go: a running service of root.
check 'downgrade is refused' sh -c '! dpkg -i /before/*.deb'
cp /said /downgrade.said
check 'with words' grep -q 'older than .* refused' /downgrade.said
check 'nothing of it is half installed' sh -c '[ -z "$(dpkg --audit)" ] && apt-get check -qq'
check 'the new one is still there' sh -c '[ -x /usr/lib/muster/own-state ] && muster key list'
check 'downgrade that was asked for' env MUSTER_DOWNGRADE=yes dpkg -i /before/*.deb
# It knows no signer: a downgrade gives the keys back first (docs/keys.md).
cp -a /var/lib/muster-signer/ca/ca.key /var/lib/muster/ca/ && cp -a /var/lib/muster-signer/keys/signing.pem /var/lib/muster/keys/ && rm /var/lib/muster/keys.signer
chown -R root:root /var/lib/muster /var/cache/muster /run/muster /etc/muster/secrets
chmod 0700 /etc/muster/secrets
systemctl daemon-reload
# Where the new one has migrated the store, the backup is the way back (docs/upgrade.md).
if ! muster status >/said 2>&1 && grep -q 'was written by a newer muster' /said; then
  echo 'ok: the version before refuses the migrated store'
  check 'the way back is the backup' muster --state /var/lib/muster restore /srv/before.muster --replace --passphrase-file /srv/passphrase
fi
check 'the version before runs again' systemctl restart muster-server
until_true serves || { systemctl status --no-pager -l muster-server; tail -n 5 /var/lib/muster/muster.log; }
check 'upgrade with a running service' apt-get install -y -qq --no-install-recommends /packages/*.deb
cp /said /upgrade.said
check 'it says that it starts it again' grep -q 'muster-server.service is started again, as user muster' /upgrade.said
until_true serves || { systemctl status --no-pager -l muster-server; tail -n 5 /var/lib/muster/muster.log; }
check 'which is user muster' sh -c "[ \$(ps -o user= -p $(pid_of muster-server)) = muster ]"
sums >/sums.again
check 'keys are as they were' cmp /sums.before /sums.again
check 'purge' apt-get purge -y -qq muster
cp /said /purge.said
check 'leaves the state' sh -c '[ -s /var/lib/muster/muster.db ] && [ -s /etc/muster/secrets/bmc ]'
check 'and says so' grep -q 'were kept' /purge.said
check 'no unit of it runs' sh -c '! systemctl list-units --plain --no-legend "muster*" | grep -q running'
journalctl --no-pager | tail -60 >/journal.all
echo PROBE-DONE
PROBE
boot_probe
