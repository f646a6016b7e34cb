# shellcheck shell=bash
# Sourced by the tests of the archives, from the root of the runfiles.
. tests/support/shell.sh

root="$PWD"
main_archive="$(echo "$root"/dist/weir-[0-9]*.tar.gz)"
cuda_archive="$(echo "$root"/dist/weir-cuda-[0-9]*.tar.gz)"
folder="$(basename "$main_archive" .tar.gz)"
version="${folder#weir-}"
version="${version%%-*}"
unset WEIR_CONFIG WEIR_BACKEND WEIR_PLUGINS WEIR_MODULE_PATH POCL_DEVICES OCL_ICD_VENDORS

# unpack TO: unpacks the first archive into a folder with another name.
unpack()
{
    mkdir -p "$TEST_TMPDIR/unpacked" "$(dirname "$1")"
    tar -xzf "$main_archive" -C "$TEST_TMPDIR/unpacked"
    mv "$TEST_TMPDIR/unpacked/$folder" "$1"
}

# exports FILE: the symbols that a shared library exports, on one line.
exports()
{
    nm -D --defined-only "$1" | awk '$2 ~ /[A-Z]/ && $3 !~ /^(__bss_start|_edata|_end)$/ { print $3 }' | xargs
}

# skip NAME REASON: ends the test as skipped, in its report too.
skip()
{
    echo "SKIPPED: $2"
    [ -z "${XML_OUTPUT_FILE-}" ] || printf '%s\n' \
        "<testsuites><testsuite name=\"dist\" tests=\"1\" skipped=\"1\"><testcase name=\"$1\"" \
        "><skipped message=\"$2\"/></testcase></testsuite></testsuites>" >"$XML_OUTPUT_FILE"
    exit 0
}

# need TOOL...: skips the test if one is missing.
need()
{
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null ||
            skip "$tool" "$tool is not installed; tools/setup.sh --tests installs it"
    done
}

# block LANGUAGE NUMBER [PAGE]: that code block of docs/install.md, or of another page.
block()
{
    local page="docs/${3:-install.md}"
    awk -v fence="\`\`\`$1" -v wanted="$2" '/^```$/ { shown = 0 } shown { print }
        $0 == fence && ++count == wanted { shown = 1 }' "$root/$page" |
        grep . || fail "$page has no block $2 in $1"
}
