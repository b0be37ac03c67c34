import { type AddressPool, adminPoolFor } from '../../api/address-pool.js';
import { versionProblemOf } from '../../api/networks/cni-version.js';
import { HOLDFAST_IPAM, chainedPlugins, ipamSections } from '../../api/networks/ipam-delegation.js';
import { asList, asRecord } from '../../api/json.js';
import { BRIDGE_PLUGINS } from '../../api/networks/nad-guests.js';
import { type NetworkAttachmentDefinition, readCniConfig } from '../../api/networks/network-attachment.js';
import type { ParsedNad } from '../../cluster/transforms.js';

const OFF = 'Off';
/** Plugins whose interfaces have no port at which their node can filter what they send. */
const WITHOUT_PORT: readonly unknown[] = ['ipvlan', 'sriov', 'ib-sriov', 'macvtap', 'host-device', 'vlan', 'tap'];

/** Returns the mode of the guard of a NAD's interfaces: that of an administrator's pool of its network, or its own. */
export function guardModeOf(
  nad: Pick<ParsedNad, 'config' | 'delegation' | 'metadata'>,
  pools: readonly AddressPool[],
): string {
  const { delegation } = nad;
  const serving = adminPoolFor(nad, pools);
  const own = delegation.kind === 'holdfast' ? delegation.config.guard : undefined;
  return (serving === undefined ? own : serving.spec.guard)?.mode ?? OFF;
}

/** Warns of interfaces whose guard cannot be applied, or comes late. @param mode of their guard */
export function warnOfGuard(nad: NetworkAttachmentDefinition, mode: string): string[] {
  const config = readCniConfig(nad);
  if (!config.ok || config.value === undefined) return [];
  const [chained] = chainedPlugins(config.value);
  const isList = config.value.plugins !== undefined;
  const path = isList ? 'spec.config.plugins[0]' : 'spec.config';
  const main = isList ? asRecord(asList(config.value.plugins)[0]) : config.value;
  if (main.type === HOLDFAST_IPAM)
    return [
      `${path} fails: the plugin "${HOLDFAST_IPAM}" follows the one that creates the interface, in a list of plugins`,
    ];
  if (chained === undefined) return mode === OFF ? [] : warnOfPort(path, main);
  if (ipamSections(config.value).length > 0) {
    return [
      `${chained.path} fails, because a plugin delegates IPAM: remove it. Interfaces with addresses of Holdfast have the guard of their pool`,
    ];
  }
  return [
    ...warnOfVersion(config.value),
    ...warnOfOwnGuard(chained),
    ...warnOfPort(path, main),
    ...warnOfState(path, main),
  ];
}

function warnOfVersion(config: Record<string, unknown>): string[] {
  const problem = versionProblemOf(config);
  return problem === undefined ? [] : [`${problem}. Until then, no pod on this network starts`];
}

function warnOfOwnGuard({ path, plugin }: { path: string; plugin: Record<string, unknown> }): string[] {
  if (plugin.guard === undefined) return [];
  return [
    `${path}.guard has no effect: the guard is that of the AddressPool of the network, which an administrator creates`,
  ];
}

function warnOfPort(path: string, { type }: Record<string, unknown>): string[] {
  if (type === 'macvlan') {
    return [
      `${path}.type: the guard of macvlan interfaces is inside their pods: it needs Linux 5.16 and a virtual machine, and nobody sees what it drops. Other pods do not start with Enforce`,
    ];
  }
  if (!WITHOUT_PORT.includes(type)) return [];
  return [
    `${path}.type: interfaces of the plugin "${String(type)}" cannot have a guard. Their pods do not start with guard.mode Enforce: use bridge, or set guard.mode to "Off"`,
  ];
}

function warnOfState(path: string, { type, disableContainerInterface }: Record<string, unknown>): string[] {
  // only a bridge plugin can leave the interface down until the guard is applied
  if (!BRIDGE_PLUGINS.includes(type) || disableContainerInterface === true) return [];
  return [`${path}: the interface is up before its guard is applied: write "disableContainerInterface": true`];
}
