#!/bin/bash
# Opens pages of traces in headless Chromium and uses them: page_test.js.
set -eu
cd "$(dirname "$0")"
here="$PWD"
tmp="${TEST_TMPDIR:-$(mktemp -d)}"
make="$here/page_make"
browser="$(command -v chromium || true)"
if [ -z "$browser" ]; then
    echo "SKIPPED: there is no chromium on this machine; tools/setup.sh --tests installs it"
    exit 0
fi

# The page followed by the test, as the browser has it at the end.
use()
{
    local page="$tmp/$1.html"
    shift
    "$make" "$tmp/trace.json" "$page" "$@"
    {
        echo '<script>'
        cat "$here/page_test.js"
        echo '</script>'
    } >>"$page"
    HOME="$tmp" timeout 120 "$browser" --headless --enable-logging=stderr --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --user-data-dir="$tmp/chromium" --window-size=1400,900 --virtual-time-budget=5000 \
        --dump-dom "file://$page" >"$tmp/dom.html" 2>"$tmp/browser.log" ||
        { grep -v dbus "$tmp/browser.log"; return 1; }
    if ! grep -q '<pre id="outcome">' "$tmp/dom.html"; then
        echo "the page's scripts did not run to their end:"
        grep -v dbus "$tmp/browser.log" | tail -n 20
        return 1
    fi
    sed -n '/<pre id="outcome">/,/end of the outcome/p' "$tmp/dom.html"
    grep -q '<pre id="outcome">passed' "$tmp/dom.html"
}

failed=0
echo "a page of five operations"
use small || failed=1
echo "a page of 100,000 operations"
use large 100002 || failed=1

# If a page cannot be written, there is a message and no file.
echo "a page in a folder that does not exist"
if "$make" "$tmp/trace.json" "$tmp/absent/page.html" 2>"$tmp/message"; then
    echo "FAILED: it was written"
    failed=1
fi
grep -q "absent/page.html" "$tmp/message" || { echo "FAILED: $(cat "$tmp/message")"; failed=1; }
exit "$failed"
