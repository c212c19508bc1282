#!/busybox sh
# The first program of the guest: brings the machine up, runs the job, hands
# over what came of it, and switches off. The job's own output goes to ports of
# its own, as it comes; the rest goes to the result port in frames: a line
# "raidlab-guest KIND LENGTH", that many bytes, a line end.

/busybox mkdir -p /proc /sys /dev /run /tmp /mnt /root /var/tmp /opt/busybox
/busybox mount -t proc proc /proc
/busybox mount -t sysfs sysfs /sys
/busybox mount -t devtmpfs devtmpfs /dev
/busybox mount -t tmpfs tmpfs /run
/busybox mount -t tmpfs tmpfs /tmp
/busybox --install -s /opt/busybox
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/busybox
export HOME=/root LC_ALL=C TERM=dumb
mkdir -p /dev/pts /dev/shm /run/lock
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/mounts /etc/mtab
hostname raidlab-guest
# The kernel asks for personalities, ciphers and file systems by itself.
echo /opt/busybox/modprobe >/proc/sys/kernel/modprobe
while read -r module; do
    modprobe "$module"
done </raidlab/modules

for daemon in /usr/lib/systemd/systemd-udevd /lib/systemd/systemd-udevd; do
    if [ -x "$daemon" ]; then
        "$daemon" --daemon 2>/dev/null
        udevadm trigger --action=add
        udevadm settle
        break
    fi
done

port() {
    for folder in /sys/class/virtio-ports/*; do
        if [ "$(cat "$folder/name" 2>/dev/null)" = "$1" ]; then
            echo "/dev/${folder##*/}"
        fi
    done
}

frame() {
    printf 'raidlab-guest %s %s\n' "$1" "$(wc -c <"$2")" >&3
    cat "$2" >&3
    printf '\n' >&3
}

exec 3>"$(port raidlab.result)"
: >/run/empty
frame ready /run/empty

cd /root
/raidlab/job </raidlab/input 3>&- >"$(port raidlab.stdout)" 2>"$(port raidlab.stderr)"
echo $? >/run/exit
frame exit /run/exit

while read -r path; do
    if [ -e "$path" ]; then
        find "$path"
    fi
done </raidlab/take | cpio -o -H newc >/run/files 2>/dev/null
frame files /run/files
frame end /run/empty
sync
poweroff -f
