#!/bin/busybox sh
# Process 1 of a guest: an operating system with busybox and a guest agent, which asks for addresses by DHCP.
/bin/busybox mkdir -p /sbin /usr/bin /usr/sbin /proc /sys /dev /run /tmp
/bin/busybox --install -s
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/virtio-ports /var/run
while read -r module; do insmod "/lib/modules/$module.ko"; done < /lib/modules/order

# its power button, by ACPI
mkdir -p /etc/acpi/PWRF
printf '#!/bin/sh\necho "the power button was pressed" > /dev/console\npoweroff -f\n' > /etc/acpi/PWRF/00000080
chmod 755 /etc/acpi/PWRF/00000080
acpid -d > /dev/null 2>&1 &

ip link set lo up
for device in /sys/class/net/eth*; do
  udhcpc -i "${device##*/}" -s /lib/udhcpc.sh -t 100 -T 1 -A 1 -b -S \
    -O tftp -O bootfile -O ntpsrv -O 224 -O 254 > /dev/console 2>&1 &
done

for port in /sys/class/virtio-ports/*; do ln -s "/dev/${port##*/}" "/dev/virtio-ports/$(cat "$port/name")"; done
while :; do qemu-ga -m virtio-serial -p /dev/virtio-ports/org.qemu.guest_agent.0; done
