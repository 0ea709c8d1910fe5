#!/bin/sh
# Fills dnf's cache in a root folder with what install.sh installs, as a user without rights: archives and packages. Nothing is verified here.
#   $1 the root folder   $2 dnf's configuration   $3 the release   further: packages
#   MUSTER_MODULES: as of install.sh
set -eu
root=$1 config=$2 release=$3
shift 3
# By the Python that dnf itself is run by.
dnf="$(sed -n '1s/^#! *//p' "$(command -v dnf)") $(dirname "$0")/dnf-without-root.py"
. "$(dirname "$0")/into-root.sh"
enable_modules
into_root --downloadonly --nogpgcheck --setopt=keepcache=1 install -- "$@"
