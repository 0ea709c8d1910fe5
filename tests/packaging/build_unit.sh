#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build_unit.sh FOLDER [SUITE]: the RAM OS and a small image built by the build unit, under systemd as PID 1, for `muster image build` of root, who
# works as user muster: with packages from the mirror (this host's network), of which no process of root has a part. An image of dnf's packages as well,
# from an archive on loopback. No service of muster's is started.
set -euo pipefail
packages=$1 suite=${2:-bookworm}
here=$(cd "$(dirname "$0")" && pwd)
with="dnf rpm"
. "$(dirname "$0")/clean_debian.sh"
install_packages muster muster-agent muster-checks
rm -r "$root/packages"
# Image trees are too large for the memory that the system lies in.
disk=$(mktemp -d --tmpdir="${MUSTER_CACHE:-$HOME/.cache/muster}" build-unit-XXXXXX)
mkdir -p "$disk/archive"
server=
finish() {
  [ -z "$server" ] || kill "$server"
  rm -rf "$disk"
}
at_end=finish
mkdir "$disk/muster" "$disk/muster-build"
chroot "$root" chown muster:muster /var/cache/muster
chown "$(chroot "$root" id -u muster)" "$disk/muster"
# Where packages come from here, also by a proxy.
for unit in build fetch; do
  mkdir -p "$root/etc/systemd/system/muster-$unit@.service.d"
  for variable in http_proxy https_proxy; do
    [ -z "${!variable:-}" ] || printf '[Service]\nEnvironment=%s=%s\n' "$variable" "${!variable}" >"$root/etc/systemd/system/muster-$unit@.service.d/$variable.conf"
  done
done
[ -z "${http_proxy:-}" ] || touch "$root/behind-a-proxy"
# An archive of dnf's on loopback, which is a proxy as well.
if "$here/dnf_archive.sh" "$disk/archive/dnf"; then
  mkfifo "$disk/port"
  "$here/../provision/images/fetch/archive_server.py" "$disk/archive" >"$disk/port" &
  server=$!
  read -r port <"$disk/port"
  echo "http://127.0.0.1:$port" >"$root/archive.url"
  cp "$disk/archive/dnf.asc" "$root/etc/muster/dnf.asc"
fi
# What the processes of root of each unit are in, while something is built: the kernel's name of their network, and what it has.
cat >"$root/usr/local/bin/watch-units" <<'WATCH'
#!/bin/sh
until [ -e /built ]; do
  for unit in build fetch; do
    for group in $(find /sys/fs/cgroup -path "*muster-$unit@*" -name cgroup.procs); do
      for process in $(cat "$group"); do
        user=$(stat -c %U "/proc/$process") && network=$(readlink "/proc/$process/ns/net") && name=$(cat "/proc/$process/comm") || continue
        [ "$network" = "$(readlink /proc/1/ns/net)" ] && network=the-hosts
        echo "$unit $user $network $name"
        [ $unit = fetch ] || nsenter --net="/proc/$process/ns/net" ip -brief address >>/interfaces
      done
    done
  done
  sleep 0.1
done 2>/dev/null >>/processes
WATCH
chmod +x "$root/usr/local/bin/watch-units"
{ probe_begins; cat <<'PROBE'; } >"$root/usr/local/bin/probe"
nothing_left() { [ -z "$(ls -A /var/cache/muster-build)" ]; }
nothing_runs() { ! systemctl list-units --plain --no-legend 'muster-build@*' 'muster-fetch@*' | grep -q .; }
inventory() { # HOW ITS IMAGE IS BUILT
  printf 'cluster: {name: c}\nnetworks:\n  provisioning: {cidr: 10.20.0.0/16, controller: 10.20.0.1, dhcp: {mode: none}}\nimages:\n  small: {build: {%s}}\nprofiles:\n  p: {image: small}\ncredentials:\n  bmc: {username: admin, password: {file: secrets/bmc}}\nnodes: []\n' "$1" >/etc/muster/cluster.yaml
  # The build unit may not see it, and needs it for nothing.
  echo secret | install -o muster -m 0600 /dev/stdin /etc/muster/secrets/bmc
}
inventory 'suite: bookworm, packages: [linux-image-cloud-amd64]'
check 'the socket waits' systemctl is-active muster-build.socket
check 'so does the one of what it fetches' systemctl is-active muster-fetch.socket
for unit in build fetch; do
  systemd-analyze security --no-pager "muster-$unit@1.service" | tail -n 1
  check "muster-$unit@: exposure of at most 2.5" systemd-analyze security --threshold=25 --no-pager "muster-$unit@1.service"
done
check 'root alone may ask for files' sh -c '[ "$(stat -c "%U %a" /run/muster-units/fetch)" = "root 600" ] && ! runuser -u muster -- perl -e "use IO::Socket::UNIX; IO::Socket::UNIX->new(Peer => q(/run/muster-units/fetch)) or die"'
watch-units &
check 'nobody else may ask' sh -c '[ "$(stat -c "%U %a" /run/muster-build/socket)" = "muster 600" ]'
check 'the RAM OS' muster image build ramos
cp /said /ramos.said
check 'which is musters' sh -c '[ -z "$(find /var/cache/muster /var/lib/muster ! -user muster)" ] && find /var/cache/muster -name initrd.img -size +10M | grep -q .'
check 'an image' muster image build small
touch /built
cp /said /image.said
sed 's/net:.[0-9]*./own/' /processes | sort | uniq -c | sort -rn | head -n 20
# Names in brackets are systemd's own processes, in the moment before they become the unit's.
check 'what has the network is not root' sh -c 'grep -q "^fetch muster-fetch the-hosts http" /processes && ! grep "^fetch root" /processes | grep -v " (.*)\$"'
check 'what is root has no network' sh -c 'grep -q "^build root net:.* mmdebstrap" /processes && ! grep "^build .* the-hosts" /processes | grep -v " (.*)\$"'
check 'not an interface but its own loopback' sh -c 'grep -q "^lo " /interfaces && ! grep -v "^lo " /interfaces'
check 'and what relays gives up root' sh -c 'grep -q "^build _apt net:.* http" /processes'
check 'nothing that was fetched is left' sh -c '! ls -d /var/tmp/systemd-private-*-muster-fetch* 2>/dev/null | grep .'
check 'which is whole' muster image verify small
until_true nothing_left && echo 'ok: nothing of it is left with root'
until_true nothing_runs && echo 'ok: nothing runs any more'
inventory 'suite: bookworm, packages: [no-such-package-anywhere]'
check 'what fails there fails here' sh -c '! muster image build small'
cat /said
if [ -e /archive.url ]; then
  inventory "release: '9', archives: {site: {url: '$(cat /archive.url)/dnf', key: /etc/muster/dnf.asc}}"
  check 'an image of dnf' muster image build small
  cat /said
  check 'which is whole' muster image verify small
fi
# A fetch unit without room, one that is killed in the middle, and none at all.
mkdir -p /run/systemd/system/muster-fetch@.service.d
printf '[Service]\nTemporaryFileSystem=/srv:size=1M,mode=1777\nEnvironment=TMPDIR=/srv\n' >/run/systemd/system/muster-fetch@.service.d/small.conf
systemctl daemon-reload
inventory 'suite: bookworm, packages: [linux-image-cloud-amd64, less]'
check 'a full disk is said' sh -c '! muster image build small >/full 2>&1 && grep -qi "no space left" /full'
cat /full
rm -r /run/systemd/system/muster-fetch@.service.d
systemctl daemon-reload
(until [ -e /was-killed ]; do pkill -KILL -u muster-fetch; sleep 0.1; done) &
check 'a fetch unit that is killed is said' sh -c '! muster image build small >/killed 2>&1 && grep -q "the fetch unit has ended in the middle" /killed'
touch /was-killed
cat /killed
systemctl mask --runtime --now -q muster-fetch.socket
check 'one that is not there is said, with what to do' sh -c '! muster image build small >/away 2>&1 && grep -q "systemctl start muster-fetch.socket" /away'
cat /away
systemctl unmask --runtime -q muster-fetch.socket
# From here on by the site's proxy, as apt is told of it.
[ ! -e /archive.url ] || [ -e /behind-a-proxy ] || printf 'Acquire::http::Proxy "%s";\n' "$(cat /archive.url)" >/etc/apt/apt.conf.d/99proxy
# Killed in the middle: nobody waits, the unit ends, and the next build is as the first.
inventory 'suite: bookworm, packages: [linux-image-cloud-amd64, tree]'
muster image build small >/dev/null 2>&1 &
asker=$!
for i in $(seq 600); do [ -n "$(ls -A /var/cache/muster-build/*/closed/work 2>/dev/null)" ] && break; sleep 0.1; done
kill -KILL $asker
for i in $(seq 300); do systemctl list-units --plain --no-legend 'muster-build@*' | grep -q . || break; sleep 0.1; done
check 'a build that nobody waits for ends' sh -c '! systemctl list-units --plain --no-legend "muster-build@*" | grep . && ! pgrep mmdebstrap'
check 'and the next one is as the first' muster image build small
[ ! -e /etc/apt/apt.conf.d/99proxy ] || check 'by the proxy' grep -q 'GET http://.*linux-image' /archive/by-proxy
until_true nothing_left && echo 'ok: nothing of it is left with root'
# A site that gives the unit its network back, as docs/adr/0437 says.
systemctl mask --runtime --now -q muster-fetch.socket
mkdir -p /run/systemd/system/muster-build@.service.d
printf '[Service]\nEnvironment=MUSTER_FETCH_SOCKET=\nPrivateNetwork=no\nIPAddressDeny=\nRestrictAddressFamilies=AF_INET AF_INET6\n' >/run/systemd/system/muster-build@.service.d/network.conf
systemctl daemon-reload
inventory 'suite: bookworm, packages: [linux-image-cloud-amd64, less]'
check 'with the network of its own as before' muster image build small
systemd-analyze security --no-pager 'muster-build@1.service' | tail -n 1
check 'without the unit it is refused with what to do' sh -c 'systemctl stop muster-build.socket; sed -i "s/, less/, nano/" /etc/muster/cluster.yaml; ! muster image build small >/refused 2>&1 && grep -q "systemctl start muster-build.socket" /refused'
cat /refused
journalctl --no-pager -u 'muster-build@*' -u 'muster-fetch@*' | tail -n 40 >/journal.build
echo PROBE-DONE
PROBE
nspawn_options="--bind=$disk/muster:/var/cache/muster --bind=$disk/muster-build:/var/cache/muster-build --bind-ro=$disk/archive:/archive --resolv-conf=bind-host"
boot_probe
