#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts SELinux into a tree of files: Debian's setfiles with its libraries, a configuration, and file contexts in the form of file_contexts(5), with
# types that the policy of Fedora and its relatives has for these paths. Needs policycoreutils.
#   selinux_tree.sh FOLDER MODE
set -eu
program=$(command -v setfiles || command -v /usr/sbin/setfiles)
mkdir -p "$1"
cd "$1"
mkdir -p etc/selinux/targeted/contexts/files usr/sbin
cp "$program" usr/sbin/setfiles
for library in $(ldd "$program" | grep -o '/[^ ]*'); do
  mkdir -p ".$(dirname "$library")"
  cp -L "$library" ".$library"
done
printf '# written by a test\nSELINUX=%s\nSELINUXTYPE=targeted\n' "$2" >etc/selinux/config
cat >etc/selinux/targeted/contexts/files/file_contexts <<'END'
/.*	system_u:object_r:default_t:s0
/	-d	system_u:object_r:root_t:s0
/boot(/.*)?	system_u:object_r:boot_t:s0
/etc(/.*)?	system_u:object_r:etc_t:s0
/etc/shadow.*	--	system_u:object_r:shadow_t:s0
/etc/hosts[^/]*	--	system_u:object_r:net_conf_t:s0
/etc/systemd/system(/.*)?	system_u:object_r:systemd_unit_file_t:s0
/root(/.*)?	system_u:object_r:admin_home_t:s0
/root[/]\.ssh(/.*)?	system_u:object_r:ssh_home_t:s0
/usr(/.*)?	system_u:object_r:usr_t:s0
/usr/(.*/)?s?bin(/.*)?	system_u:object_r:bin_t:s0
/usr/(.*/)?lib(64)?(/.*)?	system_u:object_r:lib_t:s0
/proc(/.*)?	<<none>>
END
