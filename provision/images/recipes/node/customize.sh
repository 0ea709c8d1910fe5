#!/bin/sh
# Runs when all packages of a node image are installed. $1 is the root folder.
set -eu
root=$1

# The initramfs that essential.sh put off. A live image has none: it starts with the RAM OS's initrd.
rm "$root/usr/sbin/update-initramfs"
chroot "$root" dpkg-divert --quiet --local --rename --remove /usr/sbin/update-initramfs
if [ "${INITRD:-}" != No ] && [ -e "$root/usr/sbin/update-initramfs" ]; then
  for kernel in "$root"/boot/vmlinuz-*; do
    chroot "$root" update-initramfs -c -k "${kernel#"$root"/boot/vmlinuz-}"
  done
fi

# The boot loader reads these names; Debian keeps them up to date when a kernel is installed later.
[ -e "$root/vmlinuz" ] || ln -s "boot/$(cd "$root/boot" && ls vmlinuz-* | sort -V | tail -n 1)" "$root/vmlinuz"
ls "$root"/boot/initrd.img-* >/dev/null 2>&1 || live=yes  # a live image starts with the RAM OS's initrd
[ -n "${live:-}" ] || [ -e "$root/initrd.img" ] || ln -s "boot/$(cd "$root/boot" && ls initrd.img-* | sort -V | tail -n 1)" "$root/initrd.img"

systemctl --root="$root" enable systemd-networkd.service systemd-resolved.service
# A node is updated by muster, not by itself; and these only make the first boot longer.
systemctl --root="$root" mask apt-daily.timer apt-daily-upgrade.timer apt-daily.service apt-daily-upgrade.service \
  e2scrub_all.timer e2scrub_reap.service dpkg-db-backup.timer systemd-firstboot.service \
  systemd-networkd-wait-online.service
# Services that cannot start before the pool's phase has brought their configuration and keys; it enables them then.
for unit in munge.service slurmd.service; do
  [ ! -e "$root/lib/systemd/system/$unit" ] || systemctl --root="$root" disable "$unit"
done
systemctl --root="$root" set-default multi-user.target

# What belongs to one machine must not be in the image: identities, keys, names, logs.
: > "$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id" "$root"/etc/ssh/ssh_host_* "$root/etc/munge/munge.key" "$root/etc/hostname"
rm -rf "$root"/run/* "$root/etc/.resolv.conf.systemd-resolved.bak"
ln -sf ../run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/debconf/*-old "$root"/var/cache/ldconfig \
  "$root"/var/lib/dpkg/*-old "$root"/var/lib/apt/lists/*
find "$root/var/log" -type f -exec sh -c ': > "$1"' _ {} \;
mkdir -p "$root/boot/efi"
