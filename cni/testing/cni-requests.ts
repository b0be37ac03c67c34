import { containerdArgs, formatCniArgs, thinMultusArgs } from '../../test/container-runtimes.js';
import type { PluginRequest } from '../agent/request.js';

/** Requests of the CNI plugin for tests. */

/** The config on stdin and in the NAD. */
export const NETWORK_CONFIG = {
  cniVersion: '1.0.0',
  name: 'blue',
  type: 'bridge',
  bridge: 'br1',
  ipam: { type: 'holdfast' },
};

export const REQUEST_POD = { namespace: 'vms', name: 'p1', uid: 'p1-uid', containerId: 'c1' };
const CNI_ARGS = formatCniArgs(thinMultusArgs(REQUEST_POD, containerdArgs(REQUEST_POD)));

/** Returns a valid request with the given changes. `undefined` removes a variable or key. */
export function pluginRequest(
  command: string,
  env: Record<string, string | undefined> = {},
  config: object = {},
): PluginRequest {
  const variables: Record<string, string | undefined> = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: 'c1',
    CNI_NETNS: '/run/netns/p1',
    CNI_IFNAME: 'net1',
    CNI_PATH: '/opt/cni/bin',
    CNI_ARGS,
    ...env,
  };
  const set = Object.entries(variables).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return { env: Object.fromEntries(set), config: JSON.stringify({ ...NETWORK_CONFIG, ...config }), guard: 1 };
}
