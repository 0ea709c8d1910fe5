#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the smallest tree of files that an import takes: a kernel's header, an initrd, an init at systemd's place, the C library and its loader,
# /usr merged. Nothing in it would really run a machine; each file is what its format asks for.
#   make_startable_tree.sh FOLDER
set -eu
mkdir -p "$1"
cd "$1"
mkdir -p boot etc root tmp var usr/bin usr/sbin usr/lib/systemd usr/lib64 usr/lib/x86_64-linux-gnu usr/lib/modules/6.1
for name in bin sbin lib lib64; do ln -s usr/$name $name; done
cp /usr/bin/true usr/lib/systemd/systemd
ln -s ../lib/systemd/systemd usr/sbin/init
cp -L /lib/x86_64-linux-gnu/libc.so.6 usr/lib/x86_64-linux-gnu/libc.so.6
cp -L /lib64/ld-linux-x86-64.so.2 usr/lib64/ld-linux-x86-64.so.2
echo 'ID=test' >etc/os-release
echo node >etc/hostname
: >usr/lib/modules/6.1/modules.dep
# Documentation/arch/x86/boot.rst: setup_sects 1, syssize 64 paragraphs, boot_flag, "HdrS" 2.15, XLF_KERNEL_64; 2048 bytes in all.
{
  head -c 497 /dev/zero; printf '\001\000\000\100\000\000\000'; head -c 6 /dev/zero; printf '\125\252\353\146HdrS\017\002'
  head -c 46 /dev/zero; printf '\001\000'; head -c 1480 /dev/zero | tr '\0' K
} >boot/vmlinuz-6.1
(cd etc && echo hostname | cpio --quiet --create --format=newc) | zstd -q -c >boot/initrd.img-6.1
