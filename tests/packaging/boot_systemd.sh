# SPDX-License-Identifier: Apache-2.0
# For scripts that are sourced into, behind clean_debian.sh: starts systemd as PID 1 in $root (systemd-nspawn, a network of its own), which runs
# /usr/local/bin/probe and ends. What the probe says lies in $root/probe.out then.
printf '[Unit]\nAfter=basic.target sockets.target\n[Service]\nType=oneshot\nTimeoutStartSec=1080\nExecStart=/usr/local/bin/probe\nExecStopPost=/bin/systemctl --no-block --force poweroff\n[Install]\nWantedBy=multi-user.target\n' >"$root/etc/systemd/system/probe.service"
chroot "$root" systemctl enable -q probe.service
# nspawn wants the unified hierarchy; machines with the older one have it unused.
mount -t cgroup2 none /sys/fs/cgroup || { echo "no cgroup2 here"; exit 77; }
group=/sys/fs/cgroup/muster-boot-test-$$
mkdir "$group"
(
  echo $BASHPID >"$group/cgroup.procs"
  # shellcheck disable=SC2086  # several options, or none
  SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout 1140 systemd-nspawn --boot --register=no --keep-unit ${nspawn_options:---private-network} --console=pipe -D "$root" >"$work/console" 2>&1 </dev/null
) || true
find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
[ -e "$root/probe.out" ] || { echo "systemd did not come up here:"; tail -5 "$work/console"; exit 77; }
