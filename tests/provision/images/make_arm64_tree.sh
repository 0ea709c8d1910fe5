#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes of the tree of make_startable_tree.sh one for arm64: its programs are linked by clang for that processor, without a file of it here.
#   make_arm64_tree.sh FOLDER
set -eu
cd "$1"
aarch64() { clang-19 --target=aarch64-linux-gnu -fuse-ld=lld-19 -nostdlib -fPIC "$@"; }
libraries=usr/lib/aarch64-linux-gnu
rm -rf usr/lib64 lib64 usr/lib/x86_64-linux-gnu
mkdir -p $libraries
printf 'int from_libc(void) { return 0; }' >code.c
echo 'GLIBC_2.36 { *; };' >versions
aarch64 -shared -Wl,-soname,libc.so.6 -Wl,--version-script=versions code.c -o $libraries/libc.so.6
aarch64 -shared code.c -o usr/lib/ld-linux-aarch64.so.1
printf 'int from_libc(void); int start(void) { return from_libc(); }' >code.c
aarch64 -pie -Wl,-e,start -Wl,--dynamic-linker=/lib/ld-linux-aarch64.so.1 code.c $libraries/libc.so.6 -o usr/lib/systemd/systemd
rm code.c versions
# Documentation/arch/arm64/booting.rst: image_size at 16, "ARM\x64" at 56, and at 60 where its UEFI program's header is: AArch64, one section
# of 512 bytes behind 512.
{
  printf 'MZ'; head -c 14 /dev/zero; printf '\000\000\001\000\000\000\000\000'; head -c 32 /dev/zero; printf 'ARM\144\100\000\000\000'
  printf 'PE\000\000\144\252\001\000'; head -c 16 /dev/zero
  printf '.text\000\000\000\000\002\000\000\000\020\000\000\000\002\000\000\000\002\000\000'; head -c 16 /dev/zero
  head -c 384 /dev/zero; head -c 512 /dev/zero | tr '\0' K
} >boot/vmlinuz-6.1
