# shellcheck shell=bash
# Sourced by the tests of benchmarks, after cli.sh.

# report CODE: runs python over $output, which is JSON, as `data`. median(value) is that
# of a figure, after a check of its spread.
report()
{
    printf '%s' "$output" | python3 -c '
import json, sys
data = json.load(sys.stdin)
tables = data["tables"]

def median(value):
    assert value["min"] <= value["median"] <= value["max"], value
    return value["median"]

'"$1" || fail "not what was expected: $output"
}

# expect_plot FILE NAME...: a valid SVG file that contains the names.
expect_plot()
{
    local file="$1"
    shift
    python3 - "$file" "$@" <<'PYTHON' || fail "$file is not the plot that was expected"
import math, re, sys
import xml.etree.ElementTree as tree

root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "{http://www.w3.org/2000/svg}svg", root.tag
text = open(sys.argv[1]).read()
assert not re.search(r"\b(nan|inf)\b", text), "a coordinate is no number"
width, height = float(root.get("width")), float(root.get("height"))
words = " ".join(root.itertext())
for name in sys.argv[2:]:
    assert name in words, (name, words)
marks = 0
for element in root.iter():
    kind = element.tag.split("}")[1]
    if kind == "circle" or kind == "rect" and element.get("fill-opacity"):
        marks += 1
    for key, limit in (("x", width), ("cx", width), ("x1", width), ("y", height), ("cy", height)):
        if element.get(key) is not None:
            assert 0 <= float(element.get(key)) <= limit, (kind, key, element.get(key))
assert marks > 0, "there is nothing in it"
PYTHON
}

# lossy BACKEND KIND COUNT: lossy.ini, with the plugin that loses operations of that kind after so many.
lossy()
{
    {
        printf '[weir]\nbackend = %s\nplugins = lossy\n\n[lossy]\nkind = %s\nforwarded = %s\n' "$@"
        printf '\n[arr_coc]\nside = 64\ngrid = 4\nbudget = 256\n'
    } >lossy.ini
}

# expect_wrong WORDS ARGUMENT...: with lossy.ini weir bench tells wrong results, and times nothing.
expect_wrong()
{
    expect_message 1 "$1" env WEIR_MODULE_PATH="$(dirname "$program")/../lib/weir:$here/tests/plugins/lossy" \
        "$weir" bench "${@:2}" --config lossy.ini --turns 1
    [ -z "$output" ] || fail "wrong results, and yet it printed: $output"
}

# expect_usage WORDS ARGUMENT...: weir bench does not take the arguments.
expect_usage()
{
    expect_message 2 "$1" "$weir" bench "${@:2}"
    [ -z "$output" ] || fail "weir bench ${*:2} printed: $output"
}
