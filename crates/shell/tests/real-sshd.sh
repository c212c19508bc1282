#!/bin/sh
# Runs the ssh tests of this crate over a real connection to this machine.
#
#     crates/shell/tests/real-sshd.sh [LOGIN-SHELL]...
#
# An OpenSSH server with keys of its own listens on a private port for as long
# as the tests run, once for each login shell (bash and, for FreeBSD's sake,
# tcsh, where they are installed). It needs sshd, and root where sshd does.
set -eu

port=${RAIDLAB_TEST_SSH_PORT:-20622}
crate=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/raidlab-sshd-XXXXXX")
server=
end() {
    [ -z "$server" ] || kill "$server"
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 1' INT TERM

[ $# -gt 0 ] || set -- bash tcsh
ssh-keygen -q -t ed25519 -N '' -f "$folder/host"
ssh-keygen -q -t ed25519 -N '' -f "$folder/user"
cp "$folder/user.pub" "$folder/authorized"
echo "[127.0.0.1]:$port $(cat "$folder/host.pub")" >"$folder/known"

cat >"$folder/client" <<EOF
Host store1
    HostName 127.0.0.1
    Port $port
    IdentityFile $folder/user
    IdentitiesOnly yes
    UserKnownHostsFile $folder/known
Host nowhere
    HostName 127.0.0.1
    Port 1
EOF

for name in "$@"; do
    shell=$(command -v "$name") || { echo "no $name here" >&2; continue; }
    cat >"$folder/server" <<EOF
ListenAddress 127.0.0.1:$port
HostKey $folder/host
AuthorizedKeysFile $folder/authorized
PidFile none
StrictModes no
MaxStartups 100
PasswordAuthentication no
PermitRootLogin yes
ForceCommand exec $shell -c "\$SSH_ORIGINAL_COMMAND"
EOF
    mkdir -p /run/sshd
    "$(PATH=$PATH:/usr/sbin command -v sshd)" -D -e -f "$folder/server" 2>"$folder/log" &
    server=$!
    sleep 1
    echo "login shell $shell"
    (cd "$crate" && RAIDLAB_TEST_SSH_CONFIG=$folder/client cargo test -p raidlab-shell --lib ssh::tests)
    kill "$server"
    wait "$server" || true
    server=
done
