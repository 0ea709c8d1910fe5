#!/bin/sh
# Runs when the packages of the RAM OS are installed: makes an initrd's content of the Debian folder.
#   $1             the root folder
#   MUSTER_RECIPES the folder of these recipes
#   MUSTER_OUT     where vmlinuz goes
#   MUSTER_ARCH    the processor, in Debian's words
#   MUSTER_MODULES patterns of modules that the inventory asks for, one a line
set -eu
root=$1

# The kernel travels beside the initrd.
version=$(ls "$root/usr/lib/modules")
case $version in
*'
'*) echo "ram_os: its packages bring more than one kernel ($(echo $version)); there can be one" >&2; exit 1 ;;
esac
cp "$root/boot/vmlinuz-$version" "$MUSTER_OUT/vmlinuz"
rm -rf "$root"/boot/* "$root/vmlinuz" "$root/vmlinuz.old" "$root/initrd.img" "$root/initrd.img.old"

# Keep the modules that servers need, and what those depend on.
modules=$root/usr/lib/modules/$version
asked=$(mktemp)
trap 'rm -f "$asked"' EXIT
printf '%s\n' "$MUSTER_MODULES" > "$asked"
while read -r pattern; do
  [ -z "$pattern" ] || find "$modules/kernel" -type f -path "$modules/kernel/$pattern*" | grep -q . ||
    { echo "ram_os.modules: the kernel $version has no module $pattern" >&2; exit 1; }
done < "$asked"
"$MUSTER_RECIPES/ramos/keep-modules.sh" "$modules" "$MUSTER_RECIPES/ramos/modules" "$asked"
depmod -b "$root" "$version"

# Firmware of arm64 boots by these from the network, and the controller has no package of them: it is for another processor.
if [ "$MUSTER_ARCH" = arm64 ]; then
  cp "$root/usr/lib/shim/shimaa64.efi.signed" "$MUSTER_OUT/shim.efi"
  cp "$root/usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed" "$MUSTER_OUT/grub.efi"
fi

# Tools of a package system that is not there any more, and text that nobody reads.
cd "$root"
rm -rf usr/share/doc usr/share/man usr/share/info usr/share/locale usr/share/common-licenses usr/share/bug usr/share/lintian \
  usr/share/perl usr/share/perl5 usr/lib/*-linux-gnu/perl usr/lib/*-linux-gnu/perl-base usr/lib/*-linux-gnu/gconv \
  usr/bin/perl* usr/share/initramfs-tools usr/lib/udev/hwdb.d usr/lib/udev/hwdb.bin usr/share/grub \
  usr/lib/grub/*/monolithic usr/lib/grub/*/*.module usr/lib/grub/*/*.exec \
  var/lib/dpkg var/lib/apt var/cache var/log usr/bin/dpkg* usr/bin/apt* usr/lib/apt usr/lib/dpkg usr/share/dpkg usr/share/debconf
# Of the signed boot loaders only those that a written disk gets.
rm -f usr/lib/grub/*-signed/gcd* usr/lib/grub/*-signed/grubnet* usr/lib/shim/fb* usr/lib/shim/mm* usr/lib/shim/shim*.efi
# xfsprogs brings Python and ICU for a program that nobody runs here; they are half of an initrd.
rm -rf usr/bin/python3* usr/bin/py3* usr/bin/pydoc3* usr/lib/python3* usr/share/python3 usr/lib/*-linux-gnu/libicu* \
  usr/lib/*-linux-gnu/libsqlite3* usr/sbin/xfs_scrub* usr/sbin/xfs_db
find usr/lib/systemd -mindepth 1 -maxdepth 1 ! -name systemd-udevd ! -name network -exec rm -rf {} +
mkdir -p var/cache var/log var/lib/dhcp mnt/target

# busybox lends the DHCP client and a few small tools; Debian's own come first.
mkdir -p usr/lib/muster usr/lib/busybox
ln -s /bin/busybox usr/lib/busybox/udhcpc
ln -s /bin/busybox usr/lib/busybox/vi
ln -s /bin/busybox usr/lib/busybox/ping
install -m 0755 "$MUSTER_RECIPES/ramos/init" init
install -m 0755 "$MUSTER_RECIPES/ramos/dhcp.sh" usr/lib/muster/dhcp.sh
echo ramos > etc/hostname
# What lies on the disks is nobody's to put to use: a volume group that udev activates holds the disk that is to be written.
printf 'global {\n\tevent_activation = 0\n}\nactivation {\n\tauto_activation_volume_list = [ ]\n}\n' > etc/lvm/lvmlocal.conf
: > etc/machine-id
: > etc/resolv.conf
