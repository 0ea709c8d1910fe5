#!/bin/sh
# Runs after Debian's essential packages and before the kernel is installed: how the initramfs is made.
set -eu
root=$1
mkdir -p "$root/etc/initramfs-tools/conf.d"
# One image serves many machines, so all drivers stay in (MODULES=most); zstd unpacks fastest.
cat > "$root/etc/initramfs-tools/conf.d/muster" <<'EOF'
MODULES=most
COMPRESS=zstd
COMPRESSLEVEL=3
RESUME=none
EOF

# Several packages ask for an initramfs, each time anew, and that is most of an emulated build: it is made once,
# when all are there (customize.sh).
chroot "$root" dpkg-divert --quiet --local --rename --add /usr/sbin/update-initramfs
printf '#!/bin/sh\nexit 0\n' > "$root/usr/sbin/update-initramfs"
chmod 755 "$root/usr/sbin/update-initramfs"
