# SPDX-License-Identifier: Apache-2.0
# For scripts that are sourced into: a minimal Debian of the release $suite in the cache (made once), and $root, a copy of it under an overlay in
# memory in which no daemon starts by itself. The caller is in a mount namespace of its own, and undoes $work at its end.
base=${MUSTER_CACHE:-$HOME/.cache/muster}/chroots/$suite-minbase
if [ ! -e "$base/etc/debian_version" ]; then
  mkdir -p "$(dirname "$base")"
  rm -rf "$base.making"
  mmdebstrap --variant=minbase --include=ca-certificates "$suite" "$base.making" >/dev/null
  mv "$base.making" "$base"
fi
work=$(mktemp -d)
mount -t tmpfs -o size=3g work "$work"
mkdir "$work/upper" "$work/work" "$work/system"
mount -t overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" clean "$work/system"
root=$work/system
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
