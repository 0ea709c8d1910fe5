#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rpm.sh FOLDER: the rpm of the agent in FOLDER asks nothing of a system and offers it nothing; dnf installs it into an empty root from a local
# repository, where its programs start without any other file.
set -euo pipefail
rpm=$(find "$1" -maxdepth 1 -name "muster-agent-*.rpm" 2>/dev/null | head -n 1) || true
[ -n "$rpm" ] || { echo "no rpm in $1: ./run package"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "needs root for a chroot"; exit 77; }
command -v dnf >/dev/null && command -v rpm >/dev/null && command -v createrepo_c >/dev/null || { echo "needs dnf, rpm and createrepo-c"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
check() { local what=$1; shift; if "$@" >"$work/said" 2>&1; then echo "ok: $what"; else echo "FAILED: $what"; tail -n 10 "$work/said"; bad=1; fi; }
words() { # OPTION WANTED: what rpm says of it, without rpm's own
  said=$(rpm -qp --nosignature "$1" "$rpm" | grep -v '^rpmlib(' | sort)
  [ "$said" = "$2" ] || { echo "$said"; return 1; }
}
version=$(rpm -qp --nosignature --qf '%{version}-%{release}' "$rpm")
check 'it asks nothing of the system' words --requires ''
check 'it offers nothing but itself' words --provides "$(printf 'muster-agent = %s\nmuster-agent(x86-64) = %s' "$version" "$version")"
check 'it runs no script' words --scripts ''
check 'all is root and in one folder' sh -c "! rpm -qp --nosignature --qf '[%{FILEUSERNAME} %{FILEGROUPNAME} %{FILENAMES}\n]' '$rpm' | grep -v '^root root /usr/lib/muster'"
mkdir -p "$work/repo" "$work/empty"
cp "$rpm" "$work/repo"
createrepo_c --quiet "$work/repo"
inside() { dnf --quiet --assumeyes --installroot="$work/empty" --releasever=1 --setopt=reposdir=/nonexistent --setopt=varsdir=/nonexistent --setopt=cachedir="$work/cache" \
  --setopt=logdir="$work" --nogpgcheck --repofrompath="muster,file://$work/repo" --repo=muster "$@"; }
check 'dnf installs it' inside install muster-agent
check 'every file is as packed' rpm --root "$work/empty" --verify muster-agent
starts() { # PROGRAM WORDS…: what it says without any other file of a system; the loader looks up in /proc where the program lies
  local program=$1 wanted=$2
  # shellcheck disable=SC2016  # of the inner shell
  unshare --mount --propagation private sh -c 'mkdir -p "$0/proc" && mount -t proc proc "$0/proc" && exec chroot "$0" "$1" --version' "$work/empty" "/usr/lib/muster/$program" >"$work/words" 2>&1 || true
  grep -q "$wanted" "$work/words" || { cat "$work/words"; return 1; }
}
check 'muster-agent starts in a system without a C library' starts muster-agent '^muster-agent [0-9]'
if [ -e "$work/empty/usr/lib/muster/muster-peer" ]; then check 'muster-peer, too' starts muster-peer '^usage: muster-peer'; fi
check 'dnf removes it' inside remove muster-agent
check 'and nothing is left' sh -c "[ ! -e '$work/empty/usr/lib/muster' ]"
exit $bad
