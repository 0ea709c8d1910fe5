#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# release_upgrade.sh FOLDER AFTER: a controller goes from Debian 12 to Debian 13. A site of the packages in FOLDER, built on Debian 12, serves under
# systemd; the system is upgraded as docs/upgrade.md says, then the packages in AFTER, built on Debian 13, are installed. The state, its keys and
# the journal are as they were, and the service works with them. AFTER: else MUSTER_PACKAGES_TRIXIE.
set -euo pipefail
packages=$1 after=${2:-${MUSTER_PACKAGES_TRIXIE:-}} suite=bookworm
ls "$after"/muster_*.deb >/dev/null 2>&1 || { echo "no packages that were built on Debian 13: name their folder (MUSTER_PACKAGES_TRIXIE)"; exit 77; }
. "$(dirname "$0")/clean_debian.sh"
mount -o remount,size=5g "$work"
install_packages muster muster-agent muster-checks
mkdir "$root/after"
for package in muster muster-agent muster-checks; do cp "$after/$package"_*.deb "$root/after"; done
# What the upgrade takes is fetched first: the booted system has no network but its own wire.
find "$root/etc/apt" -name '*.list' -exec sed -i "s/bookworm/trixie/g" {} +
find "$root/etc/apt" -name '*.sources' -exec sed -i "s/bookworm/trixie/g" {} +
chroot "$root" sh -c 'export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get full-upgrade -y -qq --no-install-recommends --download-only && \
  apt-get install -y -qq --no-install-recommends --download-only $(for deb in /after/*.deb; do dpkg-deb -f "$deb" Depends; done | tr "," "\n" | sed "s/|.*//; s/(.*//; s/ //g" | grep -v "^muster" | sort -u)' \
  >"$work/apt" 2>&1 || { tail -20 "$work/apt"; exit 1; }
{ probe_begins; cat <<'PROBE'; } >"$root/usr/local/bin/probe"
a_site
rm -f /usr/sbin/policy-rc.d
sums() { find /var/lib/muster/keys /var/lib/muster/ca /var/lib/muster-signer -type f \( -name '*.pem' -o -name '*.key' \) -exec sha256sum {} + 2>/dev/null | sed 's:/.*/::' | sort; }
check 'the site serves on Debian 12' systemctl start muster-server
until_true serves || { systemctl status --no-pager -l muster-server; tail -n 5 /var/lib/muster/muster.log; }
check 'Debian 12' grep -q '^12' /etc/debian_version
check 'something is in the journal' muster quarantine add node001 --reason 'before the upgrade'
muster key list >/keys.before
sums >/sums.before
echo 'a passphrase for the test' | install -o muster -m 0600 /dev/stdin /etc/muster/secrets/backup
install -d -o muster -m 0700 /srv/backup
check 'backup' muster backup /srv/backup/before.muster --passphrase-file /etc/muster/secrets/backup
check 'stop' systemctl stop muster-server
check 'Debian is upgraded' apt-get full-upgrade -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold
cp /said /upgrade.said
check 'Debian 13' grep -q '^13' /etc/debian_version
check 'nothing serves meanwhile' silent
check 'the packages of Debian 13' apt-get install -y -qq --no-install-recommends --reinstall --allow-downgrades /after/*.deb
cp /said /install.said
check 'are the ones that are there' sh -c 'ldd /usr/lib/muster/muster | grep -q "libfmt.so.10" && ! ldd /usr/lib/muster/muster | grep -q "not found"'
check 'the state is whole' muster store check
systemctl daemon-reload
check 'the service starts' systemctl start muster-server
until_true serves || { systemctl status --no-pager -l muster-server; tail -n 20 /var/lib/muster/muster.log; }
check 'as user muster' sh -c "[ \$(ps -o user= -p $(pid_of muster-server)) = muster ]"
muster key list >/keys.after
sums >/sums.after
check 'keys are as they were' cmp /sums.before /sums.after
check 'and are said the same' cmp /keys.before /keys.after
check 'what people have said is known' sh -c 'muster quarantine list | grep -q "before the upgrade"'
check 'the journal goes on from there' sh -c 'muster audit verify'
check 'the backup of Debian 12 is read' sh -c 'muster --state /srv/restored restore /srv/backup/before.muster --passphrase-file /etc/muster/secrets/backup && [ -s /srv/restored/muster.db ]'
check 'what is left of Debian 12 goes' apt-get autoremove -y -qq
check 'and the service needs none of it' sh -c 'systemctl restart muster-server'
until_true serves
journalctl --no-pager | tail -60 >/journal.all
echo PROBE-DONE
PROBE
boot_probe
