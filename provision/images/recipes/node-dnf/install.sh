#!/bin/sh
# Installs packages into a new root folder. Runs in a mount namespace of its own, so what is mounted here goes with it.
#   $1 the root folder   $2 dnf's configuration   $3 the release   further: packages
#   MUSTER_MODULES: module streams that are enabled first ("nodejs:18 perl:5.32")
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

# No option of this machine's dnf takes part: the archives are those of the configuration, each with its key.
into_root() {
  dnf --config="$config" --installroot="$root" --releasever="$release" --noplugins --assumeyes --quiet \
    --setopt=reposdir="$root/nowhere" --setopt=varsdir="$root/nowhere" "$@"
}
# shellcheck disable=SC2086  # names without blanks or globs, as the inventory checks
[ -z "${MUSTER_MODULES-}" ] || into_root module enable -- $MUSTER_MODULES
into_root install -- "$@"

rm "$root/etc/dracut.conf.d/muster-build.conf"
"$(dirname "$0")/customize.sh" "$root"
umount "$root/proc" "$root/sys"
umount -R "$root/dev"
