#!/bin/sh
# Installs packages into a new root folder. Runs in a mount namespace of its own, so what is mounted here goes with it.
#   $1 the root folder   $2 dnf's configuration   $3 the release   further: packages
#   MUSTER_MODULES: module streams that are enabled first ("nodejs:18 perl:5.32")
#   MUSTER_FETCHED: not empty where all is in dnf's cache already, and there is no network
set -eu
root=$1 config=$2 release=$3
shift 3

mkdir -p "$root/proc" "$root/sys" "$root/dev"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /dev "$root/dev"

# Packages make their initrd as they are installed: the same files are to give the same one.
mkdir -p "$root/etc/dracut.conf.d"
echo 'reproducible="yes"' >"$root/etc/dracut.conf.d/muster-build.conf"

dnf="dnf${MUSTER_FETCHED:+ --cacheonly}"
. "$(dirname "$0")/into-root.sh"
enable_modules
into_root install -- "$@"

rm "$root/etc/dracut.conf.d/muster-build.conf"
"$(dirname "$0")/customize.sh" "$root"
umount "$root/proc" "$root/sys"
umount -R "$root/dev"
