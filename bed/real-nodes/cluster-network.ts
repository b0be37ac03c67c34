import { API_SERVER_ADDRESSES } from '../control-plane/certificates.js';
import { capture } from '../processes/processes.js';

/** Addresses of a node by its number, from 1. */
export function nodeAddresses(number: number): { readonly own: string; readonly pods: string } {
  return { own: `10.77.0.${String(10 + number)}`, pods: `10.78.${String(number)}.0/24` };
}

/** Makes the network of nodes in the control plane's network namespace, which is this process's own. */
export async function createNodeNetwork(): Promise<void> {
  await ip(
    'link add nodes type bridge',
    'link set nodes up',
    `address add ${API_SERVER_ADDRESSES[0]}/24 dev nodes`,
    `address add ${API_SERVER_ADDRESSES[1]}/32 dev lo`,
  );
  await capture('sh', ['-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward']);
}

/**
 * Gives a node a network namespace with its name, and eth0 in the network of nodes. Pods of other nodes are reached through the control
 * plane.
 */
export async function plugIn(node: string, number: number): Promise<void> {
  const { own, pods } = nodeAddresses(number);
  await ip(
    `netns add ${node}`,
    `link add node${String(number)} type veth peer name eth0 netns ${node}`,
    `link set node${String(number)} master nodes up`,
    `route replace ${pods} via ${own}`,
    `-n ${node} link set lo up`,
    `-n ${node} address add ${own}/24 dev eth0`,
    `-n ${node} link set eth0 up`,
    `-n ${node} route add default via ${API_SERVER_ADDRESSES[0]}`,
  );
}

/** Makes a bridge of a node, whose uplink goes to the switch of the same name, which all nodes share. */
export async function joinSwitch(node: string, number: number, bridge: string): Promise<void> {
  await capture('ip', ['link', 'show', bridge]).catch(() =>
    ip(`link add ${bridge} type bridge`, `link set ${bridge} up`),
  );
  const [port, uplink] = [`${bridge}n${String(number)}`, `${bridge}up`];
  await ip(
    `link add ${port} type veth peer name ${uplink} netns ${node}`,
    `link set ${port} master ${bridge} up`,
    `-n ${node} link add ${bridge} type bridge`,
    `-n ${node} link set ${uplink} master ${bridge} up`,
    `-n ${node} link set ${bridge} up`,
  );
}

/** Removes the network namespace of a node without processes, with all links in it. */
export async function unplug(node: string): Promise<void> {
  await ip(`netns delete ${node}`);
}

async function ip(...commands: readonly string[]): Promise<void> {
  for (const command of commands) await capture('ip', command.split(' '));
}
