#!/bin/sh
# Packs the root folder $1 as the initrd $2: sorted, owned by root, so that the same content gives the same file.
set -eu
cd "$1"
find . -print0 | LC_ALL=C sort -z | cpio --null --create --reproducible --format=newc --owner=0:0 --quiet | zstd -T0 -12 -q -f -o "$2"
