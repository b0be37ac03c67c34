import type { Nft } from '../nft.js';

/** How long the hold lasts if the guest never comes. */
const HOLD_MS = 30_000;

/** Names the MAC address of a guest that migrates to this node, where plugins find it. */
export const HOLD_FILE = 'hold';

/**
 * A CNI plugin that stands before another one, `static` by default. On the target of a migration, ADD holds the pod's port until a reverse ARP of the guest, before
 * the pod's end is up. The port of a veth pair is found by its index; a macvlan has none, so the hold is in the pod.
 */
export function heldIpam({ command, env }: Nft, next = 'static'): string {
  return `#!/bin/sh
set -eu
file=/run/holdfast/${HOLD_FILE}
if [ "$CNI_COMMAND" = ADD ] && [ -e $file ]; then
  mac=$(cat $file)
  peer=$(nsenter --net="$CNI_NETNS" ip -d -o link show "$CNI_IFNAME" | sed -n 's/^[0-9]*: [^@]*@if\\([0-9]*\\):.* veth .*/\\1/p')
  if [ -n "$peer" ]; then
    port=$(ip -o link | sed -n "s/^$peer: \\([^@:]*\\).*/\\1/p") hook=ingress within=
  else
    port=$CNI_IFNAME hook=egress within="nsenter --net=$CNI_NETNS"
  fi
  export LD_LIBRARY_PATH=${env.LD_LIBRARY_PATH ?? ''}
  $within ${command} -f - <<RULES
table netdev holdfast-$port {
  set held { type ether_addr; flags dynamic,timeout; timeout ${String(HOLD_MS)}ms; size 4; elements = { $mac } }
  chain port {
    type filter hook $hook device "$port" priority -100; policy accept;
    ether saddr != $mac counter drop
    ether type 0x8035 delete @held { ether saddr } counter accept
    ether saddr @held counter drop
  }
}
RULES
  unset LD_LIBRARY_PATH
fi
exec "\${0%/*}/${next}"
`;
}
