#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# refused.sh CHECK PROGRAM: passes when CHECK refuses PROGRAM and names everything that it lacks.
set -uo pipefail
found=$("$1" "$2")
status=$?
echo "$found"
[ $status = 1 ] || { echo "expected status 1, got $status"; exit 1; }
for lack in 'not position independent' 'no RELRO' 'no immediate binding' 'executable stack' 'no stack protector' 'unchecked .*strcpy'; do
  grep -q "$lack" <<<"$found" || { echo "it does not say: $lack"; exit 1; }
done
