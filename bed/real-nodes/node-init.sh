#!/bin/sh
# Process 1 of a real node, in namespaces of its own: mounts, processes, network, host name.
# $1 folder of the node  $2 its name  $3 its cgroup  $4 kubelet  $5 folder with containerd, ctr, runc
set -eu
node=$1 name=$2 cgroup=$3 kubelet=$4 runtime=$5
hostname "$name"

# A boot finds what was on the disk. /run is empty.
mkdir -p "$node/var/lib/kubelet" "$node/var/log/pods" "$node/var/tmp" "$node/etc" "$node/etc.work" "$node/opt/cni/bin"
ln -sfn /run "$node/var/run"
mount -t overlay -o "lowerdir=/etc,upperdir=$node/etc,workdir=$node/etc.work" overlay /etc
mount --bind "$node/opt" /opt
mount -t tmpfs -o mode=755 tmpfs /run
mount --bind "$node/var" /var
# kubelet wants these values, which belong to the whole machine: it reads them, and nothing is changed.
for setting in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1; do
  file=/run/settings-${setting%=*}
  mkdir -p "${file%/*}"
  echo "${setting#*=}" > "$file"
  mount --bind "$file" "/proc/sys/${setting%=*}"
done
mount --make-rshared /

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mkdir -p "/sys/fs/cgroup/$cgroup"
else
  for hierarchy in /sys/fs/cgroup/*/; do
    mkdir -p "$hierarchy$cgroup" 2>/dev/null || continue
    for file in cpuset.cpus cpuset.mems; do
      [ ! -e "$hierarchy$file" ] || cat "$hierarchy$file" > "$hierarchy$cgroup/$file"
    done
  done
fi

export PATH="$runtime/usr/bin:$runtime/usr/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
LD_LIBRARY_PATH=$(echo "$runtime"/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH

# As systemd does: starts a program again when it ends, unless it was told to stop.
supervise() {
  service=$1
  shift
  while :; do
    while [ -e "/run/$service.stopped" ]; do sleep 0.1; done
    "$@" >> "/var/log/$service.log" 2>&1 &
    echo $! > "/run/$service.pid"
    wait $! || true
    sleep 0.5
  done
}

supervise containerd containerd --config /etc/containerd/config.toml &
until ctr version > /run/ctr.log 2>&1; do sleep 0.1; done
supervise kubelet "$kubelet" --config=/etc/kubernetes/kubelet.yaml --kubeconfig=/etc/kubernetes/kubelet.kubeconfig --hostname-override="$name" \
  --node-ip="$(ip -4 -o address show dev eth0 | sed 's/.*inet \([0-9.]*\).*/\1/')" &
wait
