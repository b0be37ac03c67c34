import { nameFirst } from '../../api/json.js';
import { readIpamDelegation } from '../../api/networks/ipam-delegation.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { deliveryOf } from '../../api/networks/nad-guests.js';
import { type NetworkAttachmentDefinition, parseNetworkConfig } from '../../api/networks/network-attachment.js';
import type { Client } from '../../kube/client.js';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { CommandError } from '../exit-code.js';
import { INSTALL_HOLDFAST, readList, readObject, required, valueOr } from '../reader.js';

const MAX_NAMED = 10;

/** A network to test. */
export interface TestedNetwork {
  readonly nad: { readonly namespace: string; readonly name: string };
  /** Whether VMs on it keep their addresses. */
  readonly isPersistent: boolean;
}

/**
 * Finds the NAD with this name, or the only one of the namespace that delegates to Holdfast.
 * @param name like `blue`, or `lab/blue` for one in another namespace
 * @throws {CommandError} if there is none, or if its pods get no addresses
 */
export async function findNetwork(client: Client, home: string, name: string | undefined): Promise<TestedNetwork> {
  const nad = name === undefined ? await onlyNetwork(client, home) : await namedNetwork(client, home, name);
  const { namespace = '' } = nad.metadata;
  const key = `NetworkAttachmentDefinition ${objectKey(nad)}`;
  const config = parseNetworkConfig(nad);
  if (!config.ok) throw new CommandError(`${key}: ${config.problem.field} ${config.problem.message}`);
  if (deliveryOf(nad).kind === 'guest')
    throw new CommandError(
      `${key} has no ipam, so its pods get no addresses: name a NAD of the same network with "ipam": {"type": "holdfast"}`,
    );
  return { nad: { namespace, name: nad.metadata.name }, isPersistent: config.network.allowPersistentIPs };
}

async function namedNetwork(client: Client, home: string, name: string): Promise<NetworkAttachmentDefinition> {
  const [first = '', second] = name.split('/');
  const ref = second === undefined ? { namespace: home, name: first } : { namespace: first, name: second };
  const found = valueOr(await readObject(client, NETWORK_ATTACHMENT_DEFINITIONS, ref), { absent: undefined });
  if (found !== undefined) return found;
  const key = joinKey(ref.namespace, ref.name);
  throw new CommandError(`NetworkAttachmentDefinition ${key} does not exist: kubectl get net-attach-def -A lists all`);
}

async function onlyNetwork(client: Client, namespace: string): Promise<NetworkAttachmentDefinition> {
  const all = required(await readList(client, NETWORK_ATTACHMENT_DEFINITIONS, { namespace }), INSTALL_HOLDFAST);
  const own = all.filter((nad) => readIpamDelegation(nad).kind === 'holdfast');
  const [first, ...others] = own;
  if (first !== undefined && others.length === 0) return first;
  const names = own.map(({ metadata }) => metadata.name);
  const several = `has several NADs: ${nameFirst(names, MAX_NAMED)}`;
  const problem = own.length === 0 ? 'has no NAD that delegates to holdfast' : several;
  throw new CommandError(`namespace ${namespace} ${problem}. Name one with --network, or another namespace with -n`);
}
