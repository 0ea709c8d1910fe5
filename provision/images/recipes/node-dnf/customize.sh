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
# MUSTER_SELINUX: what the inventory says. Permissive where it says nothing: then labels are nobody's concern. Files are labelled when all are there.
selinux=${MUSTER_SELINUX:-permissive} config=$root/etc/selinux/config
case $selinux in
permissive) [ ! -e "$config" ] || sed -i 's/^SELINUX=enforcing/SELINUX=permissive/' "$config" ;;
disabled) [ ! -e "$config" ] || sed -i 's/^SELINUX=.*/SELINUX=disabled/' "$config" ;;
enforcing)
  [ ! -e "$config" ] || sed -i 's/^SELINUX=.*/SELINUX=enforcing/' "$config"
  grep -q '^SELINUX=enforcing' "$config" || { echo "no SELINUX= in /etc/selinux/config: no package has brought SELinux's policy" >&2; exit 1; } ;;
esac

# What belongs to one machine must not be in the image: identities, keys, names, logs.
: > "$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id" "$root"/etc/ssh/ssh_host_* "$root/etc/munge/munge.key" "$root/etc/hostname" "$root/var/lib/systemd/random-seed"
rm -rf "$root"/run/* "$root"/var/cache/dnf "$root"/var/lib/dnf/history.sqlite* "$root"/var/cache/ldconfig "$root"/var/log/dnf* "$root"/var/log/hawkey*
[ ! -d "$root/var/log" ] || find "$root/var/log" -type f -exec sh -c ': > "$1"' _ {} \;
# What SQLite shares among those who have rpm's records open; nobody has, and all is in the records.
[ -s "$root/var/lib/rpm/rpmdb.sqlite-wal" ] || rm -f "$root/var/lib/rpm/rpmdb.sqlite-wal" "$root/var/lib/rpm/rpmdb.sqlite-shm"
mkdir -p "$root/boot/efi"
