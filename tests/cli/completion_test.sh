#!/bin/bash
# What `weir completion` prints, in the real shells: each completes exactly the members and options
# that --help lists, of every command, and the values and operands of some. A shell that is not
# installed is left out, and said.
. tests/cli/cli.sh
export PATH="${weir%/*}:$PATH" # the scripts ask the command

# members_of PATH: the members that --help of a group lists.
members_of()
{
    # shellcheck disable=SC2086
    "$weir" ${1#weir} --help | sed -n "s/^  $1 \([a-z]*\)  .*/\1/p
        /^usage: $1 [A-Z]* \[OPTION\]/,\$s/^  \([a-z][a-z-]*\)  .*/\1/p"
}

# options_of PATH: those of its --help, without the conditions of `weir trace check`.
options_of()
{
    printf '%s\n' -h --help --version
    # shellcheck disable=SC2086
    "$weir" ${1#weir} --help | sed -n '/^usage: .*\[OPTION\]\.\.\.$/,/^$/d
        s/^  \(-[a-z]\), \(--[a-z]*\) .*/\1\n\2/p; s/^  \(-[A-Za-z]\) .*/\1/p; s/^  \(--[a-z-]*\) [^'"'"'].*/\1/p'
}

# The lines, and what each shell shall complete them to, one a line.
lines=()
declare -A wanted
want()
{
    lines+=("$1")
    wanted["$1"]="$2"
}

paths=(weir)
for ((i = 0; i < ${#paths[@]}; i++)); do
    path="${paths[i]}"
    mapfile -t members < <(members_of "$path")
    for member in "${members[@]}"; do
        paths+=("$path $member")
    done
    want "$path -" "$(options_of "$path")"
    # These two also take a program, of which there are others on each machine.
    [ "${#members[@]}" -eq 0 ] || [ "$path" = "weir trace" ] || [ "$path" = "weir sim" ] ||
        want "$path " "$(printf '%s\n' "${members[@]}")"
done
[ "${#paths[@]}" -ge 35 ] || fail "--help names only ${#paths[@]} commands: ${paths[*]}"

mkdir -p work/folder
touch work/file.png work/fog # no folder
cd work
want "weir run arr-coc --output fo" "folder"
want "weir run arr-coc --weights fi" "file.png"
want "weir run arr-coc --weights=fi" "file.png"
want "weir run arr-coc --repeat f" ""
want "weir run arr-coc --repeat 2 fi" "file.png"
want "weir kernels check -D X -I fo" "folder"
want "weir run arr-coc -o fo" "folder"
want "weir doctor f" ""
want "weir trace html fi" "file.png"
want "weir trace timel" "timeline"
# The value of an option has the name of a member.
want "weir trace --output html --rep" "--report"
want "weir kernels build --symbol check --dep" "--depfile"
# Another program, and its arguments.
want "weir check --quiet mkfif" "mkfifo"
want "weir check -q cat fi" "file.png"
want "weir trace -o html --rep" "--report"
want "weir trace -- cat fi" "file.png"

# check SHELL ANSWERS: a file of lines and what each was completed to, `LINE TAB WORD`.
check()
{
    local line got
    for line in "${lines[@]}"; do
        # fish gives the whole word of --name=value.
        got="$(awk -F '\t' -v line="$line" '$1 == line { print $2 }' "$2" | sed 's|/$||; s/^--.*=//')"
        diff <(printf '%s\n' "${wanted[$line]}" | LC_ALL=C sort -u) \
            <(printf '%s\n' "$got" | LC_ALL=C sort -u) ||
            fail "$1 completes '$line' to this (>) and not that (<)"
    done
}

# have SHELL: whether it is installed; its script is made in any case.
have()
{
    expect_quiet 0 "$weir" completion "$1"
    printf '%s\n' "$output" >"$TEST_TMPDIR/script.$1"
    command -v "$1" >/dev/null && return 0
    echo "SKIPPED: $1 is not installed; tools/setup.sh --tests installs it"
    return 1
}

have bash
bash -n ../script.bash
cat >../drive.bash <<'TEXT'
# The words are those that readline makes: `=` is one.
source ../script.bash
for line in "$@"; do
    read -r -a COMP_WORDS <<<"${line//=/ = }"
    [[ $line != *" " ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _weir
    for word in "${COMPREPLY[@]}"; do
        printf '%s\t%s\n' "$line" "$word"
    done
done
complete -p weir
TEXT
bash ../drive.bash "${lines[@]}" >../bash.answers
check bash ../bash.answers
grep -q -x 'complete -F _weir weir' ../bash.answers || fail "bash's script completes nothing"

if have fish; then
    fish --no-config -n ../script.fish
    # shellcheck disable=SC2016
    fish --no-config -c 'source ../script.fish
        for line in $argv
            for match in (complete -C $line)
                printf "%s\t%s\n" $line $match
            end
        end' -- "${lines[@]}" >../fish.answers
    check fish ../fish.answers
    grep -q "^weir .trace.trace a program, and read traces" ../fish.answers ||
        fail "fish shows no summary"
fi

# zsh completes only where it edits lines, on a terminal.
cat >../inner.zsh <<'TEXT'
exec 3>../answers
PROMPT=
fpath=($PWD/.. $fpath)
autoload -U compinit
compinit -D -u
zstyle ':completion:*' completer _complete
compadd() {
    local -a hits
    if [[ " ${@[1,(i)(-|--)]} " != *" -"[OAD]" "* ]]; then
        builtin compadd -A hits "$@"
        (( ! $#hits )) || print -rl -u 3 -- "${(@)hits}"
    fi
    builtin compadd "$@"
}
capture() {
    _main_complete
    print -u 3 END
    compstate[insert]= compstate[list]=
}
capture-line() {
    zle capture
    BUFFER=
}
zle -C capture complete-word capture
zle -N capture-line
bindkey '^T' capture-line
print -u 3 READY
TEXT
cat >../drive.zsh <<'TEXT'
zmodload zsh/zpty
mkfifo ../answers
zpty shell zsh -f -i
exec 3<>../answers
zpty -w shell "source ../inner.zsh"
read -r -u 3 answer
for line in "$@"; do
    zpty -n -w shell "$line"$'\C-t'
    while read -r -u 3 answer && [[ $answer != END ]]; do
        print -r -- "$line"$'\t'"$answer"
    done
done
zpty -d shell
TEXT
if have zsh; then
    zsh -f -n ../script.zsh
    cp ../script.zsh ../_weir
    zsh -f ../drive.zsh "${lines[@]}" >../zsh.answers
    check zsh ../zsh.answers
fi

expect_message 2 "weir completion has no 'tcsh'" "$weir" completion tcsh
expect_message 2 "weir completion needs a SHELL" "$weir" completion
expect_full "$program" completion bash
