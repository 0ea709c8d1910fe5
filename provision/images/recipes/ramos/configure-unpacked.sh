#!/bin/sh
# Runs when the packages of a RAM OS for another processor are unpacked: their own scripts cannot run here. Of what those do, a RAM OS
# needs only this (docs/adr/0316). The loader's cache is not among it: Debian's loader looks into its own folders without one.
#   $1  the root folder
set -eu
root=$1
cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
# update-alternatives
[ -e "$root/usr/bin/awk" ] || ln -s mawk "$root/usr/bin/awk"
[ -e "$root/usr/bin/which" ] || ln -s which.debianutils "$root/usr/bin/which"
# The kernel's: which of its modules needs which.
for modules in "$root"/usr/lib/modules/*; do depmod -b "$root" "${modules##*/}"; done
