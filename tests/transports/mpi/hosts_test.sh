#!/bin/bash
# hosts_test.sh mpich|openmpi: collectives between two hosts, which are two namespaces of the network, with names of
# their own and a cable between them. Skipped, with the reason, where such hosts cannot be made.
. tests/support/shell.sh

if [ "${2-}" != inside ]; then
    command -v "mpirun.$1" >/dev/null || {
        echo "skipped: mpirun.$1 is not installed; tools/setup.sh installs it"
        exit 0
    }
    unshare -nu ip link add cable type veth peer name far 2>/dev/null || {
        echo "skipped: this process cannot make namespaces of the network with a cable (ip, unshare)"
        exit 0
    }
    exec unshare -nu "$0" "$1" inside
fi

ranks="$PWD/tests/transports/mpi/ranks"
folder="$(mktemp -d /tmp/weir-hosts.XXXXXX)"
mkfifo "$folder/end"
unshare -nu sh -c 'hostname there; read -r _ <"$0"' "$folder/end" &
there=$!
trap 'kill "$there"; rm -rf "$folder"' EXIT
hostname here
until [ "$(readlink "/proc/$there/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add cable type veth peer name far
ip link set far netns "$there"
ip link set lo up
ip addr add 10.215.0.1/24 dev cable
ip link set cable up
nsenter -t "$there" -n sh -ec 'ip link set lo up; ip link set far name cable
    ip addr add 10.215.0.2/24 dev cable; ip link set cable up'

# In place of ssh: AGENT [-OPTION]... HOST COMMAND…
cat >"$folder/agent" <<END
#!/bin/bash
while [[ "\$1" == -* ]]; do shift; done
[ "\$1" != 10.215.0.2 ] || into="nsenter -t $there -n -u"
shift
exec \$into sh -c "\$*"
END
chmod +x "$folder/agent"

case "$1" in
openmpi)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
    export OMPI_MCA_orte_tmpdir_base="$folder" OMPI_MCA_plm_rsh_agent="$folder/agent"
    export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=cable OMPI_MCA_oob_tcp_if_include=cable
    printf '10.215.0.%s slots=2\n' 1 2 >"$folder/hosts"
    command=(mpirun.openmpi --map-by node --hostfile "$folder/hosts" -x RANKS_OUTPUT)
    library=libmpi.so.40
    ;;
mpich)
    command=(mpirun.mpich -launcher ssh -launcher-exec "$folder/agent" -iface cable
        -hosts 10.215.0.1,10.215.0.2)
    library=libmpich.so.12
    ;;
esac
export RANKS_OUTPUT="$folder/ranks"
unset "${!PMI@}" "${!OMPI_COMM@}"

# on COUNT COMMAND…: $output is what the ranks print, sorted and without repetitions.
on()
{
    local count="$1"
    shift
    rm -rf "$RANKS_OUTPUT"
    mkdir "$RANKS_OUTPUT"
    timeout 120 "${command[@]}" -n "$count" "$@" >"$folder/said" 2>&1 ||
        fail "$* on $count ranks: $(cat "$folder/said" "$RANKS_OUTPUT/"*)"
    output="$(cat "$RANKS_OUTPUT/"* | sort -u)"
}

on 2 sh -c 'hostname >"$RANKS_OUTPUT/$(hostname)"'
[ "$output" = $'here\nthere' ] || fail "the hosts are: $output"
on 2 "$ranks" order,messages,groups "$library"
[ "$output" = ok ] || fail "it printed: $output"
on 4 "$ranks" order "$library"
[ "$output" = ok ] || fail "order on 4 ranks printed: $output"
