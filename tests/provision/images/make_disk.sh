#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the image of a whole disk of 48 MiB in the present folder, by mtools, mke2fs and sfdisk: a GPT, a FAT partition with a boot loader for
# UEFI, an ext4 partition with TREE (a folder).
#   make_disk.sh TREE DISK [FILESYSTEM]
# FILESYSTEM: of the system's partition, instead of one made of TREE.
set -eu
tree=$1 disk=$2 system=${3:-}
# MZ, e_lfanew 0x40, "PE", machine 0x8664, one section of 512 bytes at 512 (PE Format, Microsoft).
{
  printf 'MZ'; head -c 58 /dev/zero; printf '\100\000\000\000PE\000\000\144\206\001\000'; head -c 12 /dev/zero; printf '\000\000\002\000'
  printf '.text\000\000\000'; head -c 8 /dev/zero; printf '\000\002\000\000\000\002\000\000'; head -c 16 /dev/zero
  head -c 384 /dev/zero; head -c 512 /dev/zero | tr '\0' L
} >"$disk.efi"
rm -f "$disk.esp"
truncate -s 8M "$disk.esp"
mkfs.vfat "$disk.esp" >/dev/null
mmd -i "$disk.esp" ::EFI ::EFI/BOOT
mcopy -i "$disk.esp" "$disk.efi" ::EFI/BOOT/BOOTX64.EFI
if [ -z "$system" ]; then
  system=$disk.system
  rm -f "$system"
  mke2fs -q -t ext4 -d "$tree" "$system" 32M
fi
rm -f "$disk"
truncate -s 48M "$disk"
printf 'label: gpt\nstart=2048,size=16384,type=U\nstart=18432,size=65536,type=L\n' | sfdisk -q "$disk"
dd if="$disk.esp" of="$disk" bs=512 seek=2048 conv=notrunc,sparse status=none
dd if="$system" of="$disk" bs=512 seek=18432 conv=notrunc,sparse status=none
