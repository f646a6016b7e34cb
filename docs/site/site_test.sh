#!/bin/bash
# The site's links, its pages in a browser at two widths, its search, and what stops its build.
set -eu
here="$PWD/docs/site"
tmp="${TEST_TMPDIR:-$(mktemp -d)}"
failed=0
fail()
{
    echo "FAILED: $*"
    failed=1
}

tar -xzf "$here/site.tar.gz" -C "$tmp"
site="$tmp/site"
python3 "$here/site_test.py" "$site" || fail "its links"
grep -q weir_queue_copy "$site/queue_8h.html" || fail "the reference lacks a function"
grep -q 'Never waits for the device' "$site/queue_8h.html" || fail "the reference lacks a comment"
grep -q 'Sends a message to the log callback' "$site/structweir__host.html" ||
    fail "the reference lacks what a module gets"
grep -q 'trace a program, and read traces' "$site/man-weir-trace.html" || fail "no page of the manual"
grep -q 'href="man-weir-check.html"' "$site/man-weir-trace.html" || fail "a manual page has no link"
! grep -l '&amp;#58;' "$site"/*.html || fail "pages show a colon as its number"
for page in module_8h records_8h weir_8hpp man-weir; do
    grep -q "<li><a href=\"$page.html\"" "$site/index.html" || fail "the list of pages lacks $page.html"
done

browser="$(command -v chromium || true)"
if [ -n "$browser" ]; then
    names="$(cd "$site" && ls -- *.html)"
    {
        echo '<!DOCTYPE html><meta charset="utf-8"><title>test</title><body><script>'
        echo "const pageNames = ["
        printf '"%s",\n' $names
        echo '];'
        cat "$here/site_test.js"
        echo '</script>'
    } >"$site/test.html"
    HOME="$tmp" timeout 400 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --allow-file-access-from-files --user-data-dir="$tmp/chromium" --window-size=1400,900 \
        --virtual-time-budget=600000 --dump-dom "file://$site/test.html" >"$tmp/dom.html" 2>"$tmp/browser.log" ||
        fail "the browser: $(grep -v dbus "$tmp/browser.log" | tail -n 5)"
    sed -n '/<pre id="outcome">/,/<\/pre>/p' "$tmp/dom.html"
    grep -q '<pre id="outcome">passed' "$tmp/dom.html" || fail "its pages in a browser"
else
    echo "the pages were not opened: there is no chromium on this machine; tools/setup.sh --tests installs it"
fi

# What stops the build.
tree="$tmp/tree"
make_tree()
{
    rm -rf "$tree"
    mkdir -p "$tree/docs/site" "$tree/docs/decisions" "$tree/docs/images" "$tree/api/weir" "$tree/patterns"
    cp -L "$here"/{Doxyfile,filter.py,footer.html,header.html,site.css,site.py} "$tree/docs/site/"
    printf 'Begin\nREADME.md Weir\nCONTRIBUTING.md C\nSECURITY.md S\ndocs/one.md One\n' \
        >"$tree/docs/site/pages.txt"
    printf '# Contributing\n' >"$tree/CONTRIBUTING.md"
    printf '# Security\n' >"$tree/SECURITY.md"
    printf '# Weir\n\nSee [one](docs/one.md#the-second-part).\n' >"$tree/README.md"
    printf '# One\n\n## The second part\n\nText.\n' >"$tree/docs/one.md"
    printf '// Things.\n#ifndef A_H\n#define A_H\n\n// Does it.\nint weir_one(int x);\nint weir_two(int x);\n\n#endif\n' \
        >"$tree/api/weir/a.h"
}
# refused TEXT...: each is in the message.
refused()
{
    local text
    if (cd "$tree" && docs/site/site.py --strict "$tmp/out" >"$tmp/message" 2>&1); then
        fail "a site was made in spite of: $1"
    fi
    for text in "$@"; do
        grep -q "$text" "$tmp/message" || fail "expected '$text': $(cat "$tmp/message")"
    done
}
make_tree
(cd "$tree" && docs/site/site.py --strict "$tmp/out") || fail "a small tree"
grep -q 'Does it' "$tmp/out/a_8h.html" || fail "a comment of two functions"
# All that Doxygen says is told at once.
printf '\nint weir_three(int x);\n' >>"$tree/api/weir/a.h"
mkdir "$tree/api/weir/module"
printf '// Of modules.\n#ifndef M_H\n#define M_H\n\nint weir_four(int x);\n\n#endif\n' >"$tree/api/weir/module/m.h"
printf '// In C++.\nnamespace weir\n{\ninline int five();\n}\n' >"$tree/api/weir/a.hpp"
printf '# Weir\n\nSee [one](docs/one.md#elsewhere).\n' >"$tree/README.md"
refused "weir_three(int x) (function) of file a.h is not documented" \
    "weir_four(int x) (function) of file m.h is not documented" "five() (function) of .*weir is not documented" elsewhere
make_tree
printf '# Two\n' >"$tree/docs/two.md"
refused "docs/two.md is not in docs/site/pages.txt"
make_tree
printf 'docs/three.md Three\n' >>"$tree/docs/site/pages.txt"
refused "names docs/three.md, which is not there"

# A warning of another version than the one that the pages are held against.
make_tree
mkdir -p "$tmp/bin"
cat >"$tmp/bin/doxygen" <<TEXT
#!/bin/bash
[ "\$1" != --version ] || exec echo 9.9.9
echo "a warning of this version" >&2
TEXT
chmod +x "$tmp/bin/doxygen"
(cd "$tree" && PATH="$tmp/bin:$PATH" docs/site/site.py "$tmp/out" 2>"$tmp/message") || fail "a warning of a newer Doxygen"
grep -q "a warning of this version" "$tmp/message" || fail "the warning is not told: $(cat "$tmp/message")"
PATH="$tmp/bin:$PATH" refused "a warning of this version"
exit "$failed"
