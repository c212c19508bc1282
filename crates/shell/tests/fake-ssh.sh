#!/bin/sh
# Stands in for ssh in the tests: no network, no login shell but sh. It takes
# ssh's options, makes the socket of a master connection, and runs the line.
socket= master=
while [ $# -gt 0 ]; do
    case $1 in
    -o)
        case $2 in ControlPath=*) socket=${2#ControlPath=} ;; esac
        shift 2
        ;;
    -N) master=yes; shift ;;
    --) shift; break ;;
    *) shift ;;
    esac
done
case $1 in
nowhere)
    echo 'ssh: connect to host nowhere port 22: No route to host' >&2
    exit 255
    ;;
esac
if [ "$master" ]; then
    : >"$socket"
    exec sleep 1000
fi
exec sh -c "$2"
