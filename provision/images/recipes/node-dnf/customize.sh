#!/bin/sh
# Runs when all packages of a node image with dnf are installed. $1 is the root folder, with /proc, /sys and /dev mounted.
set -eu
root=$1

# A kernel lies beside its modules; the boot loader wants it in /boot, with an initrd for any machine.
for modules in "$root"/lib/modules/*; do
  kernel=$(basename "$modules")
  [ -e "$modules/vmlinuz" ] && [ ! -e "$root/boot/vmlinuz-$kernel" ] && cp "$modules/vmlinuz" "$root/boot/vmlinuz-$kernel"
  [ ! -e "$root/boot/vmlinuz-$kernel" ] || [ -e "$root/boot/initramfs-$kernel.img" ] ||
    chroot "$root" dracut --quiet --reproducible --no-hostonly --kver "$kernel" "/boot/initramfs-$kernel.img"
done

# The links that muster's boot loader starts follow the kernels that are installed later.
install -D -m 0755 "$(dirname "$0")/link-kernel.install" "$root/etc/kernel/install.d/99-muster.install"

for unit in NetworkManager.service sshd.service; do
  [ ! -e "$root/usr/lib/systemd/system/$unit" ] || systemctl --root="$root" enable "$unit"
done
# A node is updated by muster, not by itself; and these only make the first boot longer.
systemctl --root="$root" mask dnf-makecache.timer dnf-automatic.timer systemd-firstboot.service NetworkManager-wait-online.service
for unit in munge.service slurmd.service; do
  [ ! -e "$root/usr/lib/systemd/system/$unit" ] || systemctl --root="$root" disable "$unit"
done
systemctl --root="$root" set-default multi-user.target
# What muster writes into the system carries no label: enforcing, it would not start. A site that wants SELinux labels and enforces after the first start.
[ ! -e "$root/etc/selinux/config" ] || sed -i 's/^SELINUX=enforcing/SELINUX=permissive/' "$root/etc/selinux/config"

# What belongs to one machine must not be in the image: identities, keys, names, logs.
: > "$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id" "$root"/etc/ssh/ssh_host_* "$root/etc/munge/munge.key" "$root/etc/hostname" "$root/var/lib/systemd/random-seed"
rm -rf "$root"/run/* "$root"/var/cache/dnf "$root"/var/lib/dnf/history.sqlite* "$root"/var/cache/ldconfig "$root"/var/log/dnf* "$root"/var/log/hawkey*
[ ! -d "$root/var/log" ] || find "$root/var/log" -type f -exec sh -c ': > "$1"' _ {} \;
# What SQLite shares among those who have rpm's records open; nobody has, and all is in the records.
[ -s "$root/var/lib/rpm/rpmdb.sqlite-wal" ] || rm -f "$root/var/lib/rpm/rpmdb.sqlite-wal" "$root/var/lib/rpm/rpmdb.sqlite-shm"
mkdir -p "$root/boot/efi"
