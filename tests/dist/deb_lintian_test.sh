#!/bin/bash
# lintian has nothing to say about the Debian packages but what an override of dist/debian names,
# with its reason.
. tests/dist/deb.sh
need lintian dpkg-deb

# judge FILE...: lintian, for which every tag is a failure.
judge()
{
    lintian --allow-root --display-info --pedantic --tag-display-limit 0 \
        --fail-on error,warning,info,pedantic "$@"
}
# A later lintian may have no word about what an override is for.
said="$(judge "$debian"/*.deb 2>&1 | grep -vE '^N: |: unused-override hardening-no-fortify-functions ' || true)"
[ -z "$said" ] || fail "lintian said: $said"

# It would say so: a package without its licence and with a file in a place of the user's.
cd "$TEST_TMPDIR"
dpkg-deb -R "$(package weir-opencl)" spoilt
rm spoilt/usr/share/doc/weir-opencl/copyright
mkdir -p spoilt/usr/local/lib
echo text >spoilt/usr/local/lib/file
dpkg-deb --root-owner-group -Znone --build spoilt spoilt.deb >build.messages
expect_says 2 "E: weir-opencl: no-copyright-file" judge spoilt.deb
expect_contains "$output" "E: weir-opencl: file-in-usr-local"

# Each override has its reason: a comment before it.
for file in "$root"/dist/debian/*.lintian-overrides; do
    unexplained="$(awk '/^#/ { told = 1; next } !told { print } { told = 0 }' "$file")"
    [ -z "$unexplained" ] || fail "$file gives no reason for: $unexplained"
done
