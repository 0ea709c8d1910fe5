#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# units.sh FOLDER: every unit is one that systemd understands, and is no more exposed than docs/adr/0342 and 0437 say.
set -euo pipefail
# Tenths.
worst_of() { case $1 in */muster-signer.service) echo 15 ;; */muster-fetch@.service) echo 15 ;; *) echo 25 ;; esac; }
command -v systemd-analyze >/dev/null || { echo "no systemd-analyze here"; exit 77; }
bad=0
for unit in "$1"/*.service; do
  # The program and its manual page are not installed on a machine that builds.
  if said=$(systemd-analyze verify "$unit" 2>&1 | grep -vE "is not executable: No such file|Command 'man "); [ -n "$said" ]; then
    echo "$said"
    bad=1
  fi
  exposure=$(systemd-analyze security --offline=true --threshold=100 "$unit" | sed -n 's/.*Overall exposure level for [^:]*: \([0-9]*\)\.\([0-9]\).*/\1\2/p')
  echo "$unit: ${exposure:?systemd-analyze said nothing} tenths"
  [ "$exposure" -le "$(worst_of "$unit")" ] || bad=1
done
# A setting that is misspelt is ignored without an error.
for setting in NoNewPrivileges=yes ProtectSystem=strict CapabilityBoundingSet= MemoryMax= LimitNOFILE=; do
  [ "$(grep -lF "$setting" "$1"/*.service | wc -l)" = "$(ls "$1"/*.service | wc -l)" ] || { echo "a unit is without $setting"; bad=1; }
done
grep -qx LimitFSIZE=16G "$1/muster-fetch@.service" || { echo "the fetch unit writes files without an end"; bad=1; }
# systemd 255 takes CAP_SETUID from a named root who may gain no privileges: scripts of packages could not change their user.
if grep -l '^User=root' "$1"/*.service; then echo "root is the user of a system unit that names none"; bad=1; fi
exit $bad
