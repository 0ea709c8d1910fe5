#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build_unit.sh FOLDER [SUITE]: the RAM OS and a small image built by the build unit, under systemd as PID 1, for `muster image build` of root, who
# works as user muster: with packages from the mirror (this host's network). No service of muster's is started.
set -euo pipefail
packages=$1 suite=${2:-bookworm}
. "$(dirname "$0")/clean_debian.sh"
install_packages muster muster-agent muster-checks
rm -r "$root/packages"
# Image trees are too large for the memory that the system lies in.
disk=$(mktemp -d --tmpdir="${MUSTER_CACHE:-$HOME/.cache/muster}" build-unit-XXXXXX)
at_end="rm -rf $disk"
mkdir "$disk/muster" "$disk/muster-build"
chroot "$root" chown muster:muster /var/cache/muster
chown "$(chroot "$root" id -u muster)" "$disk/muster"
# Where packages come from here, also by a proxy.
mkdir -p "$root/etc/systemd/system/muster-build@.service.d"
for variable in http_proxy https_proxy; do
  [ -z "${!variable:-}" ] || printf '[Service]\nEnvironment=%s=%s\n' "$variable" "${!variable}" >"$root/etc/systemd/system/muster-build@.service.d/$variable.conf"
done
{ probe_begins; cat <<'PROBE'; } >"$root/usr/local/bin/probe"
printf 'cluster: {name: c}\nnetworks:\n  provisioning: {cidr: 10.20.0.0/16, controller: 10.20.0.1, dhcp: {mode: none}}\nimages:\n  small: {build: {suite: bookworm, packages: [linux-image-cloud-amd64]}}\nprofiles:\n  p: {image: small}\nnodes: []\n' >/etc/muster/cluster.yaml
check 'the socket waits' systemctl is-active muster-build.socket
systemd-analyze security --no-pager 'muster-build@1.service' | tail -n 1
check 'nobody else may ask' sh -c '[ "$(stat -c "%U %a" /run/muster-build/socket)" = "muster 600" ]'
check 'the RAM OS' muster image build ramos
cp /said /ramos.said
check 'which is musters' sh -c '[ -z "$(find /var/cache/muster /var/lib/muster ! -user muster)" ] && find /var/cache/muster -name initrd.img -size +10M | grep -q .'
(until [ -e /built ]; do ps -o user= -C http,https; sleep 0.1; done) >/fetchers 2>/dev/null &
check 'an image' muster image build small
touch /built
cp /said /image.said
# Each begins as root, and gives that up before it asks for anything.
check 'what parses the answers of mirrors is not root' sh -c 'sort /fetchers | uniq -c; [ "$(grep -c _apt /fetchers)" -gt "$(grep -c root /fetchers)" ]'
cat /said
check 'which is whole' muster image verify small
check 'nothing of it is left with root' sh -c '[ -z "$(ls -A /var/cache/muster-build)" ]'
check 'nothing runs any more' sh -c '! systemctl list-units --plain --no-legend "muster-build@*" | grep .'
sed -i 's/linux-image-cloud-amd64/no-such-package-anywhere/' /etc/muster/cluster.yaml
check 'what fails there fails here' sh -c '! muster image build small'
cat /said
# Killed in the middle: nobody waits, the unit ends, and the next build is as the first.
sed -i 's/no-such-package-anywhere/linux-image-cloud-amd64, tree/' /etc/muster/cluster.yaml
muster image build small >/dev/null 2>&1 &
asker=$!
for i in $(seq 600); do [ -n "$(ls -A /var/cache/muster-build/*/closed/work 2>/dev/null)" ] && break; sleep 0.1; done
kill -KILL $asker
for i in $(seq 300); do systemctl list-units --plain --no-legend 'muster-build@*' | grep -q . || break; sleep 0.1; done
check 'a build that nobody waits for ends' sh -c '! systemctl list-units --plain --no-legend "muster-build@*" | grep . && ! pgrep mmdebstrap'
check 'and the next one is as the first' muster image build small
check 'nothing of it is left with root' sh -c '[ -z "$(ls -A /var/cache/muster-build)" ]'
check 'without the unit it is refused with what to do' sh -c 'systemctl stop muster-build.socket; sed -i "s/, tree//;s/linux-image-cloud-amd64/linux-image-cloud-amd64, less/" /etc/muster/cluster.yaml; ! muster image build small >/refused 2>&1 && grep -q "systemctl start muster-build.socket" /refused'
cat /refused
journalctl --no-pager -u 'muster-build@*' | tail -n 40 >/journal.build
echo PROBE-DONE
PROBE
nspawn_options="--bind=$disk/muster:/var/cache/muster --bind=$disk/muster-build:/var/cache/muster-build --resolv-conf=bind-host"
boot_probe
