#!/bin/sh
# Runs before packages are unpacked without being installed: /bin, /sbin and /lib lie below /usr, as Debian's installation has them.
#   $1  the root folder
set -eu
for folder in bin sbin lib; do
  mkdir -p "$1/usr/$folder"
  ln -s "usr/$folder" "$1/$folder"
done
