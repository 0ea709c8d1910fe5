#!/bin/sh
# Keeps of a kernel's modules those that lists of patterns name, and what those depend on; drops the rest.
#   $1    the folder with the modules of one kernel (…/lib/modules/VERSION)
#   $2 …  lists: one shell pattern below kernel/ a line
set -eu
modules=$1; shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat "$@" | grep -v -e '^#' -e '^$' > "$work/patterns"
awk -v patterns="$work/patterns" '
  function glob_to_regex(g) { gsub(/\./, "\\.", g); gsub(/\*/, ".*", g); return "^kernel/" g "(\\.(xz|zst|gz))?$" }
  BEGIN { while ((getline line < patterns) > 0) wanted[++n] = glob_to_regex(line) }
  { name = $1; sub(/:$/, "", name); deps = ""
    for (i = 2; i <= NF; i++) deps = deps " " $i
    depends[name] = deps }
  END {
    for (name in depends)
      for (i = 1; i <= n; i++)
        if (name ~ wanted[i]) { keep[name] = 1; m = split(depends[name], d, " "); for (k = 1; k <= m; k++) keep[d[k]] = 1; break }
    for (name in keep) print name
  }' "$modules/modules.dep" | sort > "$work/keep"
mkdir "$modules/kept"
while read -r name; do
  mkdir -p "$modules/kept/$(dirname "$name")"
  mv "$modules/$name" "$modules/kept/$name"
done < "$work/keep"
rm -rf "$modules/kernel" "$modules/updates" "$modules/extra"
for folder in "$modules"/kept/*; do mv "$folder" "$modules/"; done
rmdir "$modules/kept"
