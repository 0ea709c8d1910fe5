# SPDX-License-Identifier: Apache-2.0
# What the tests of packages share; sourced into, with `packages` (a folder; or no_packages) and `suite` set, and the script's own arguments. It skips the test
# where something is missing, puts it into a mount namespace of its own, and makes $root: a minimal Debian or Ubuntu (made once, in the cache) under an
# overlay in memory, in which no daemon starts by itself. All is undone at the script's end.
#   install_packages NAME…   those of $packages, by apt, with systemd and what else is named by $with
#   probe_begins             what every probe begins with: to be written to $root/usr/local/bin/probe
#   boot_probe               runs that probe under systemd as PID 1, shows what it said, and fails where a check did
[ -n "${no_packages:-}" ] || ls "$packages"/muster_*.deb >/dev/null 2>&1 || { echo "no packages in $packages: ./run package"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
command -v systemd-nspawn >/dev/null && command -v mmdebstrap >/dev/null || { echo "needs systemd-container and mmdebstrap"; exit 77; }
if [ -z "${IN_NAMESPACE:-}" ]; then
  exec env IN_NAMESPACE=1 unshare --mount --propagation private "$0" "$@"
fi
base=${MUSTER_CACHE:-$HOME/.cache/muster}/chroots/$suite-minbase
if [ ! -e "$base/etc/debian_version" ]; then
  mkdir -p "$(dirname "$base")"
  rm -rf "$base.making"
  archive=()
  if [ "$suite" = noble ]; then
    for ubuntu in /usr/share/keyrings/ubuntu-archive-keyring.gpg "${base%/*/*}/keys/ubuntu-archive-keyring.gpg" ""; do [ ! -e "$ubuntu" ] || break; done
    [ -n "$ubuntu" ] || { echo "no keys of Ubuntu's archive (package ubuntu-keyring, or keys/ubuntu-archive-keyring.gpg in the cache)"; exit 77; }
    curl -sfo /dev/null --max-time 60 http://archive.ubuntu.com/ubuntu/dists/noble/InRelease || { echo "Ubuntu's archive does not answer here"; exit 77; }
    archive=("$base.making" --keyring="$ubuntu")
    for pocket in noble noble-updates noble-security; do archive+=("deb http://archive.ubuntu.com/ubuntu $pocket main universe"); done
  fi
  mmdebstrap --variant=minbase --include=apt,ca-certificates "$suite" "${archive[@]:-$base.making}" >/dev/null
  mv "$base.making" "$base"
fi
work=$(mktemp -d)
root=$work/system
at_end=:
undo() {
  umount -l "$root/proc" "$root/dev/pts" "$root/dev" 2>/dev/null || true
  umount -l "$root" "$work" 2>/dev/null || true
  rmdir "$work" 2>/dev/null || true
  $at_end
}
trap undo EXIT
mount -t tmpfs -o size=3g work "$work"
mkdir "$work/upper" "$work/work" "$root"
mount -t overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" clean "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"

install_packages() { # NAME…
  mkdir -p "$root/packages"
  local name files=""
  for name in "$@"; do
    cp "$packages/${name}"_*.deb "$root/packages"
    files="$files /packages/${name}_*.deb"
  done
  # shellcheck disable=SC2086  # several packages, or none
  chroot "$root" sh -c "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq --no-install-recommends systemd-sysv dbus iproute2 ${with:-} $files" \
    >"$work/apt" 2>&1 || { tail -20 "$work/apt"; exit 1; }
}

probe_begins() {
  cat <<'PROBE'
#!/bin/sh
exec >/probe.out 2>&1
export DEBIAN_FRONTEND=noninteractive
until_true() { for i in $(seq 300); do "$@" && return 0; sleep 0.1; done; echo "FAILED: not within 30 s: $*"; return 1; }
check() { what=$1; shift; if "$@" >/said 2>&1; then echo "ok: $what"; else echo "FAILED: $what"; tail -n 5 /said; fi; }
serves() { ss -lunH 'sport = :67' | grep -q .; }
silent() { ! serves; }
pid_of() { systemctl show -p MainPID --value "$1"; }
user_of() { ps -o user:32= -C "$1" | sort -u; }
a_site() { # the shipped example, on a wire of its own
  ip link add wire type veth peer name far
  ip link set wire up
  ip link set far up
  ip address add 10.20.0.1/16 dev wire
  cp /usr/share/doc/muster/examples/cluster.yaml /etc/muster/
  (umask 077; echo secret >/etc/muster/secrets/bmc)
}
PROBE
}

boot_probe() {
  chmod +x "$root/usr/local/bin/probe"
  printf '[Unit]\nAfter=basic.target sockets.target\n[Service]\nType=oneshot\nTimeoutStartSec=1080\nExecStart=/usr/local/bin/probe\nExecStopPost=/bin/systemctl --no-block --force poweroff\n[Install]\nWantedBy=multi-user.target\n' >"$root/etc/systemd/system/probe.service"
  chroot "$root" systemctl enable -q probe.service
  # nspawn wants the unified hierarchy; machines with the older one have it unused.
  mount -t cgroup2 none /sys/fs/cgroup || { echo "no cgroup2 here"; exit 77; }
  local group=/sys/fs/cgroup/muster-boot-test-$$
  mkdir "$group"
  (
    echo $BASHPID >"$group/cgroup.procs"
    # shellcheck disable=SC2086  # several options, or none
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout 1140 systemd-nspawn --boot --register=no --keep-unit ${nspawn_options:---private-network} --console=pipe -D "$root" >"$work/console" 2>&1 </dev/null
  ) || true
  find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
  [ -e "$root/probe.out" ] || { echo "systemd did not come up here:"; tail -5 "$work/console"; exit 77; }
  if grep -q FAILED "$root/probe.out"; then tail -n 60 "$root"/journal.* 2>/dev/null || true; fi
  cat "$root/probe.out"
  grep -q PROBE-DONE "$root/probe.out" && ! grep -q FAILED "$root/probe.out"
}
