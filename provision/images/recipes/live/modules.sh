#!/bin/sh
# Packs the modules that a live image needs to start as an initrd that goes beside the RAM OS's.
#   $1 the modules of its kernel (…/modules/VERSION)   $2 $3 lists of patterns   $4 the initrd
set -eu
version=$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/usr/lib/modules"
cp -a "$1" "$work/usr/lib/modules/$version"
ln -s usr/lib "$work/lib"
rm -rf "$work/usr/lib/modules/$version/build" "$work/usr/lib/modules/$version/source" "$work/usr/lib/modules/$version/vmlinuz"
# The image may be anybody's: no name of its modules.dep and no link among its modules leads to a file of this machine.
find "$work/usr/lib/modules/$version" -type l -delete
if grep -qE '(^|[[:space:]/])\.\.([/:[:space:]]|$)' "$work/usr/lib/modules/$version/modules.dep"; then
  echo "modules.dep of $version names files outside its folder" >&2
  exit 1
fi
"$MUSTER_RECIPES/ramos/keep-modules.sh" "$work/usr/lib/modules/$version" "$2" "$3"
depmod -b "$work" "$version"
rm "$work/lib"
"$MUSTER_RECIPES/ramos/pack.sh" "$work" "$4"
