# SPDX-License-Identifier: Apache-2.0
# Read into install.sh and fetch.sh, so that both ask dnf for the same: its words come from $dnf, $config, $root and $release.
# No option of this machine's dnf takes part: the archives are those of the configuration, each with its key.
into_root() {
  # shellcheck disable=SC2086  # a program with options
  $dnf --config="$config" --installroot="$root" --releasever="$release" --noplugins --assumeyes --quiet \
    --setopt=reposdir="$root/nowhere" --setopt=varsdir="$root/nowhere" "$@"
}
enable_modules() {
  # shellcheck disable=SC2086  # names without blanks or globs, as the inventory checks
  [ -z "${MUSTER_MODULES-}" ] || into_root module enable -- $MUSTER_MODULES
}
