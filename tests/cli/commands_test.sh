#!/bin/bash
# Help, versions, the nearest name, exit codes of wrong command lines, and the
# manual pages.
. tests/cli/cli.sh

commands=("" "run" "run arr-coc" "doctor" "devices" "config" "config check" "bench" "kernels"
    "perturb" "check" "launch" "sim" "sim learn" "train" "calibrate" "completion" "completion bash"
    "completion fish" "completion zsh")
declare -A members=([kernels]="build check compare list ptx sass resources" [train]="ddp accumulate augment encdec"
    [bench]="submit overlap pipeline arr-coc swim comm")
for group in "${!members[@]}"; do
    for member in ${members[$group]}; do
        commands+=("$group $member")
    done
done
for command in "${commands[@]}"; do
    # shellcheck disable=SC2086
    expect_data 0 "$weir" $command --help
    # An option that is wider than its column has a line of its own.
    ! awk '/^  --?[a-z]/ && substr($0, 22, 1) != " " && NF > 2 + /^  -[a-z],/' <<<"$output" | grep . ||
        fail "weir $command --help prints an option and its text without a space"
    expect_contains "$output" "usage: weir"
    # What several commands have is called the same in all.
    ! grep -E '^  (--(output|quiet|help)|-[oqhs]( |$)|--(out|out-file|save|silent|verbose|format)) ' <<<"$output" ||
        fail "weir $command has an option that is spelt otherwise elsewhere"
    [ -z "$messages" ] || fail "weir $command --help wrote to standard error: $messages"
    # shellcheck disable=SC2086
    expect_data 0 "$weir" $command --version
    [ "$output" = "weir 0.1.0" ] || fail "weir $command --version said '$output'"
done

expect_usage()
{
    local part="$1"
    shift
    expect_data 2 "$weir" "$@"
    [ -z "$output" ] || fail "weir $* wrote to standard output: $output"
    expect_contains "$messages" "$part"
}

expect_usage "weir needs a COMMAND"
expect_usage "weir has no 'docter'; did you mean 'doctor'?" docter
expect_usage "weir has no 'xyzzy'; \`weir --help\` lists what it has" xyzzy
expect_usage "weir run needs a PIPELINE" run
expect_usage "weir run has no 'arrcoc'; did you mean 'arr-coc'?" run arrcoc
expect_usage "weir run arr-coc needs an image" run arr-coc
expect_usage "did you mean --output?" run arr-coc --outptu x y.png
expect_usage "has no option '-O'" run arr-coc -O x
expect_usage "--output needs a value: --output DIR" run arr-coc x.png --output
expect_usage "--output is given twice" run arr-coc x.png --output a --output=b
expect_usage "--output is empty" run arr-coc x.png --output=
expect_usage "--quiet takes no value, but got '1'" run arr-coc --quiet=1 x.png
expect_usage "--repeat takes a whole number from 1 to 1000000000, not '0'" run arr-coc --repeat 0 x.png
expect_usage "not '99999999999999999999'" run arr-coc --repeat 99999999999999999999 x.png
expect_usage "got an empty name" run arr-coc ""
expect_usage "does not know what to do with 'extra'" doctor extra
expect_usage "weir config needs a COMMAND" config
expect_usage "weir config check needs a file" config check

# What commands of several kinds take and refuse alike: an option, a program to run, a configuration.
for command in "bench overlap" calibrate check devices doctor "doctor comm" fault launch perturb "run arr-coc" sim \
    "sim learn" "sim sweep" trace "trace report" "train ddp"; do
    # shellcheck disable=SC2086
    expect_usage "did you mean --help?" $command --hlep
done
for command in check "fault --at 1" "launch -n 4" perturb "sim --gpu k20c" "sim sweep --gpu k20c --over a=1" trace; do
    # shellcheck disable=SC2086
    expect_usage "weir ${command%% -*} needs a command" $command
done
for command in "bench overlap" calibrate devices "doctor comm" "fault --at 1 true" "run arr-coc a.ppm" "trace true" \
    "train ddp"; do
    # shellcheck disable=SC2086
    expect_says 3 "missing.ini" env WEIR_CONFIG=missing.ini "$weir" $command
done

# Options of one letter, and those that may be repeated.
expect_usage "--output is given twice; give it once" kernels build -o a.c -ob.c x.cl
expect_usage "--output needs a value: --output OUT.c" kernels build x.cl -o
expect_usage "-D is empty; give it a NAME[=VALUE]" kernels check -D "" x.cl
expect_usage "has no option '--D'" kernels check --D X x.cl
expect_usage "has no option '-x'" kernels check -x x.cl

# After -- everything is an operand.
expect_says 3 "--json" "$weir" config check -- --json

# expect_explained PAGE COMMAND...: every option of the command's help is on the page; weir(1) has the two of all.
expect_explained()
{
    local page="$1" option
    shift
    for option in $("$weir" "$@" --help | sed -nE "s/^  ('|-[a-z], )?--([a-z-]*).*/\\2/p" |
        grep -vx 'help\|version'); do
        grep -qE "^\.It (Fl [a-z] , )?Fl Fl $option\b" "$man/$page.1" || fail "$page.1 does not explain --$option"
    done
    for option in $("$weir" "$@" --help | sed -n 's/^  -\([A-Za-z]\) .*/\1/p'); do
        grep -q "^\.It Fl $option\b" "$man/$page.1" || fail "$page.1 does not explain -$option"
    done
}

# A page for each command, sound, with every option of the help.
declare -A pages=([weir]="" [weir-run]="run arr-coc" [weir-doctor]="doctor"
    [weir-devices]="devices" [weir-config]="config check" [weir-bench]="bench"
    [weir-kernels]="kernels" [weir-fault]="fault" [weir-check]="check"
    [weir-launch]="launch" [weir-completion]="completion bash" [weir-calibrate]="calibrate"
    [weir-perturb]="perturb" [weir-sim]="sim" [weir-trace]="trace")
for page in "${!pages[@]}"; do
    [ -f "$man/$page.1" ] || fail "there is no page $page.1"
    lint="$(mandoc -T lint -W style "$man/$page.1" | grep -v 'referenced manual not found' || true)"
    [ -z "$lint" ] || fail "$lint"
    # shellcheck disable=SC2086
    expect_explained "$page" ${pages[$page]}
done
# And every option on a page is one of its command. The pages of conform and trace have tests of
# their own; weir(1) has the two options of all.
expect_taken()
{
    local page="$1" option all
    all="$(cat)"
    while read -r option; do
        grep -qE "^  (-[a-z], )?--$option\b" <<<"$all" || fail "$page.1 explains --$option, which is not there"
    done < <(sed -nE 's/^\.It (Fl [a-z] , )?Fl Fl ([a-z]*).*/\2/p' "$man/$page.1" | sort -u)
    while read -r option; do
        grep -qE "^  -$option,? " <<<"$all" || fail "$page.1 explains -$option, which is not there"
    done < <(sed -n 's/^\.It Fl \([A-Za-z]\) .*/\1/p' "$man/$page.1" | sort -u)
}
for page in weir-run weir-devices weir-config weir-fault weir-check weir-launch \
    weir-completion; do
    # shellcheck disable=SC2086
    "$weir" ${pages[$page]} --help | expect_taken "$page"
done
{ "$weir" doctor --help && "$weir" doctor comm --help; } | expect_taken weir-doctor
expect_explained weir-doctor doctor comm
for form in learn sweep; do
    expect_explained weir-sim sim "$form"
done
for form in report timeline html check diff mark; do
    expect_explained weir-trace trace "$form"
done
for group in "${!members[@]}"; do
    for member in ${members[$group]}; do
        expect_explained "weir-$group" "$group" "$member"
        [ "$group" = train ] || grep -q "^\.Ss $member$" "$man/weir-$group.1" || fail "weir-$group.1 has nothing of $member"
    done
    for member in ${members[$group]}; do
        "$weir" "$group" "$member" --help
    done | expect_taken "weir-$group"
done
for member in ${members[bench]}; do
    expect_output 0 "  weir bench $member" "$weir" bench "$member" --help
done
expect_output 0 "--weights W" "$weir" run arr-coc --help

# What cannot be written to standard output is not lost silently.
expect_full "$program" --help
