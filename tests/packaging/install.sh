#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh FOLDER [SUITE]: the packages in FOLDER, installed by apt into a clean Debian or Ubuntu (a minimal chroot under an overlay), used there, and
# purged. Manual pages are rendered and completion is asked for in bash, zsh and fish.
set -euo pipefail
packages=$1 suite=${2:-bookworm}
ls "$packages"/muster_*.deb >/dev/null 2>&1 || { echo "no packages for $suite: name the folder of those that ./run package made there (MUSTER_PACKAGES_${suite^^})"; exit 77; }
. "$(dirname "$0")/clean_debian.sh"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666
# minbase leaves documentation out; here it is what is tested.
rm -f "$root"/etc/dpkg/dpkg.cfg.d/*
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
failed=0
check() { # WHAT COMMAND…
  local what=$1
  shift
  if "$@" >"$work/said" 2>&1; then echo "ok: $what"; else
    echo "FAILED: $what"
    tail -20 "$work/said"
    failed=1
  fi
}

inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends man-db bash-completion zsh fish >/dev/null
inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/muster_*.deb /packages/muster-agent_*.deb /packages/muster-checks_*.deb /packages/muster-doc_*.deb $(ls /packages/muster-agent-arm64_*.deb 2>/dev/null)' >"$work/apt" 2>&1 || {
  tail -30 "$work/apt"
  exit 1
}
mode() { [ "$(inside stat -c '%U:%G %a' "$2")" = "$1" ] || { inside stat -c '%n %U:%G %a' "$2"; false; }; }
check 'version' inside muster --version
check 'from any folder, by its link' inside sh -c 'cd / && [ "$(readlink -f /usr/bin/muster)" = /usr/lib/muster/muster ]'
check 'state folder' mode 'muster:muster 700' /var/lib/muster
check 'secrets' mode 'root:muster 750' /etc/muster/secrets
check 'settings' mode 'root:root 644' /etc/muster/muster.conf
check 'cache' mode 'muster:muster 755' /var/cache/muster
check 'group muster' inside getent group muster
check 'programs are beside each other' inside sh -c 'for p in muster-agent muster-peer muster-burn muster-collective muster-pkeys muster-ibnetdisc muster-switchfw muster-fetch; do test -x /usr/lib/muster/$p || { echo $p; exit 1; }; done'
check 'all libraries are there' inside sh -c '! ldd /usr/lib/muster/muster /usr/lib/muster/muster-agent /usr/lib/muster/muster-peer /usr/lib/muster/muster-burn /usr/lib/muster/muster-collective | grep "not found"'
check 'the agent finds libraries beside itself on a node' inside sh -c 'grep -q "\$ORIGIN:\$ORIGIN/glibc" /usr/lib/muster/muster-agent'
check 'the agent runs' inside /usr/lib/muster/muster-agent --version
check 'units' inside sh -c 'for u in muster-server.service muster-monitor.service muster-build.socket muster-build@.service muster-fetch.socket muster-fetch@.service muster-dnsmasq.socket muster-subnet-manager.socket muster-signer.socket; do test -e /lib/systemd/system/$u || { echo $u; exit 1; }; done'
check 'no service is enabled' inside sh -c '! ls /etc/systemd/system/multi-user.target.wants/muster* 2>/dev/null'
check 'the site with its search' inside sh -c 'cd /usr/share/doc/muster-doc/html && grep -q "<html" index.html && test -s search/search_index.json && ! find . -xtype l | grep .'
if ls "$packages"/muster-agent-arm64_*.deb >/dev/null 2>&1; then
  check 'the agent for arm64' inside sh -c 'cd /usr/lib/muster/arm64 && for p in muster-agent muster-burn muster-collective; do [ "$(od -An -tx2 -j18 -N2 $p | tr -d " ")" = 00b7 ] || exit 1; done && ls glibc/ld-linux-aarch64.so.1'
fi
check 'a first inventory' inside sh -c 'cd /root && muster init --name hall-2 --network 10.20.0.0/16 --bmc-network 10.20.250.0/24 && test -s /etc/muster/cluster.yaml'
check 'the password that it names' inside sh -c 'echo secret | install -o muster -m 0600 /dev/stdin /etc/muster/secrets/bmc'
check 'which is right' inside sh -c 'cd / && muster inventory check'
inside mv /etc/muster/cluster.yaml /etc/muster/first.yaml
check 'the shipped example' inside sh -c 'cp /usr/share/doc/muster/examples/cluster.yaml /etc/muster/ && echo secret | install -o muster -m 0600 /dev/stdin /etc/muster/secrets/bmc && cd / && muster inventory check'
check 'the state folder that is used, by root as user muster' inside sh -c 'muster key list && [ -z "$(find /var/lib/muster ! -user muster)" ]'
check 'a secret of root alone: it says whom to give it to' inside sh -c 'umask 077; cp /etc/muster/secrets/bmc /etc/muster/secrets/new; sed s:secrets/bmc:secrets/new: /etc/muster/cluster.yaml >/etc/muster/new.yaml; chmod 644 /etc/muster/new.yaml; ! muster inventory check -f /etc/muster/new.yaml >/said 2>&1 && grep -q "chown" /said && /usr/lib/muster/own-state && muster inventory check -f /etc/muster/new.yaml; code=$?; rm /etc/muster/new.yaml /etc/muster/secrets/new; exit $code'
check 'a file of root alone is shut to it, and it says why' inside sh -c 'umask 077; cp /etc/muster/cluster.yaml ~/c.yaml; muster inventory check -f ~/c.yaml >/said 2>&1; rm ~/c.yaml; cat /said; grep -q "worked as user muster" /said'

# Manual pages: as man renders them, without a warning.
pages() {
  local page said
  for page in "$root"/usr/share/man/man1/muster*.1.gz; do
    said=$(inside sh -c "MANWIDTH=80 man --warnings -l /usr/share/man/man1/$(basename "$page") 2>&1 >/dev/null")
    [ -z "$said" ] || { echo "$page: $said"; return 1; }
  done
  inside sh -c 'man -w muster && man -w muster-rollout && man muster | grep -q "^COMMANDS"'
}
check 'manual pages' pages

# Completion, as each shell loads it of itself.
check 'bash: commands' inside bash -c '
  . /usr/share/bash-completion/bash_completion
  _completion_loader muster
  COMP_WORDS=(muster rollo); COMP_CWORD=1; _muster
  [ "${COMPREPLY[*]}" = rollout ]'
check 'bash: names of the inventory' inside bash -c '
  . /usr/share/bash-completion/bash_completion
  _completion_loader muster
  COMP_WORDS=(muster why nod); COMP_CWORD=2; _muster
  [ "${COMPREPLY[*]}" = node001 ] || { echo "${COMPREPLY[*]}"; exit 1; }'
zsh_offers() { # LINE WANTED: what Tab offers, in a real interactive zsh on a terminal of its own
  cat >"$root/offers.zsh" <<'ZSH'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; autoload -Uz compinit && compinit -u -D; LISTMAX=1000; stty rows 500 cols 200; print -r -- re\"\"ady"
zpty -r -m z out "*ready*" || exit 1
zpty -w -n z "$1"$'\t\t'
local all= piece tries
for tries in {1..100}; do
  zpty -r -t z piece && all+=$piece || sleep 0.05
  [[ $all == *"$2"* ]] && exit 0
done
print -r -- "offered: $all"
exit 1
ZSH
  inside zsh -f /offers.zsh "$1" "$2"
}
check 'zsh: a command' zsh_offers 'muster rollo' 'rollout'
check 'zsh: commands of a group' zsh_offers 'muster rollout st' 'status'
check 'zsh: names of the inventory' zsh_offers 'muster why nod' 'node001'
check 'zsh: options' zsh_offers 'muster plan --detai' '--detailed-exitcode'
fish_offers() { inside fish -c 'complete -C $argv[1] | cut -f 1 | string match -q -- $argv[2]' "$1" "$2" || { inside fish -c 'complete -C $argv[1]' "$1"; false; }; }
check 'fish: a command' fish_offers 'muster rollo' rollout
check 'fish: commands of a group' fish_offers 'muster rollout ' status
check 'fish: names of the inventory' fish_offers 'muster why ' node001
check 'fish: options' fish_offers 'muster plan --' --detailed-exitcode
fish_quiet() { [ -z "$(inside fish -c 'complete -C "muster status " >/dev/null' 2>&1)" ]; }
check 'fish: no complaint' fish_quiet

# Purge: the state stays unless asked.
inside sh -c 'umask 077; echo a key >/var/lib/muster/of-the-site'
check 'remove' inside apt-get purge -y -qq muster muster-agent muster-checks muster-doc muster-agent-arm64
check 'the state stays' inside test -s /var/lib/muster/of-the-site
check 'the secrets stay' inside test -s /etc/muster/secrets/bmc
check 'the cache goes' inside test ! -e /var/cache/muster
check 'programs go' inside sh -c 'test ! -e /usr/bin/muster && test ! -e /usr/lib/muster'
inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/muster_*.deb /packages/muster-agent_*.deb /packages/muster-checks_*.deb' >/dev/null 2>&1
check 'purge that was asked for' inside env MUSTER_PURGE_STATE=yes apt-get purge -y -qq muster
check 'the state goes then' inside test ! -e /var/lib/muster
exit $failed
