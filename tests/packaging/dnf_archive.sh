#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dnf_archive.sh FOLDER: a small signed archive for dnf in FOLDER, and its key in FOLDER.asc: the packages of the recipe node-dnf, each with one file;
# the kernel and systemd have what a system starts by. Exit status 77: a tool is missing.
set -euo pipefail
archive=$1
here=$(cd "$(dirname "$0")" && pwd)
for tool in rpmbuild rpmsign createrepo_c gpg cpio zstd; do command -v $tool >/dev/null || { echo "no $tool here"; exit 77; }; done
work=$(mktemp -d)
export GNUPGHOME=$work/gpg HOME=$work
trap 'gpgconf --kill gpg-agent; rm -rf "$work"' EXIT
mkdir -m 0700 "$GNUPGHOME"
mkdir -p "$archive"
"$here/../provision/images/make_startable_tree.sh" "$work/tree"
kernel=5.14.0-1.x86_64
names=$(grep -v '^#' "$here/../../provision/images/recipes/node-dnf/packages" | tr '\n' ' ')
{
  cat <<SPEC
Name: site
Version: 1
Release: 1
Summary: Test
License: none
BuildArch: noarch
AutoReqProv: no
%description
Test.
%install
cd %{buildroot}
mkdir -p usr/share/site lib/modules/$kernel boot usr/lib/systemd/system sbin lib64
for name in $names; do echo \$name >usr/share/site/\$name; done
cp $work/tree/boot/vmlinuz-6.1 lib/modules/$kernel/vmlinuz
cp $work/tree/boot/initrd.img-6.1 boot/initramfs-$kernel.img
cp $work/tree/usr/lib/systemd/systemd usr/lib/systemd/systemd
ln -s ../usr/lib/systemd/systemd sbin/init
echo '[Unit]' >usr/lib/systemd/system/multi-user.target
cp -L $work/tree/usr/lib/x86_64-linux-gnu/libc.so.6 $work/tree/usr/lib64/ld-linux-x86-64.so.2 lib64
SPEC
  for name in $names; do
    version=1
    [ $name != kernel ] || version=5.14.0
    printf '%%package -n %s\nVersion: %s\nSummary: Test\nAutoReqProv: no\n%%description -n %s\nTest.\n%%files -n %s\n/usr/share/site/%s\n' $name $version $name $name $name
    case $name in
      kernel) printf '/lib/modules/%s/vmlinuz\n/boot/initramfs-%s.img\n' $kernel $kernel ;;
      systemd) printf '/usr/lib/systemd\n/sbin/init\n/lib64/*\n' ;;
    esac
  done
} >"$work/site.spec"
rpmbuild --quiet -bb --define "_topdir $work/build" --define '_binaries_in_noarch_packages_terminate_build 0' --define '__os_install_post %{nil}' \
  --define "_rpmdir $archive" "$work/site.spec"
gpg --batch --quiet --passphrase '' --quick-gen-key site@example.com rsa2048 sign never
gpg --batch --armor --export site@example.com >"$archive.asc"
rpmsign --define '__gpg /usr/bin/gpg' --define '_gpg_name site@example.com' --resign "$archive"/noarch/*.rpm >/dev/null 2>&1
createrepo_c --quiet "$archive"
