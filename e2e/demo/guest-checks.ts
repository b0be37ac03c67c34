import type { IPAMClaim } from '../../api/ipam-claim.js';
import { GUEST_CONFIGURED, RESPONDERS_NAMESPACE } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import { IPAM_CLAIMS, SECRETS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import type { Lease, RunningClient } from '../../bed/network/dhcp-clients.js';
import type { PingResult } from '../../bed/network/wire-events.js';
import { untilValue } from '../../bed/processes/wait.js';
import type { Story } from '../../bed/story/story.js';
import type { Narrator } from './narrator.js';
import { describePings, isSilentAtEnd } from './page/ping-monitor.js';

interface CheckContext {
  readonly story: Story;
  readonly narrator: Narrator;
}

/** The responders must be two, on different nodes, and each must have an IPv4 address of the pool. */
export async function checkResponders({ story, narrator }: CheckContext, pods: readonly Pod[]): Promise<void> {
  const rows = await Promise.all(
    pods.map(async ({ metadata: { name }, spec }) => {
      const ref = { namespace: RESPONDERS_NAMESPACE, name };
      const isAddressed = (claim?: IPAMClaim) => (claim?.status?.ips?.length ?? 0) > 0;
      const find = () => story.client.find(IPAM_CLAIMS, ref);
      const claim = await untilValue(`IPAMClaim ${name} to have addresses`, find, isAddressed);
      return [name, spec?.nodeName ?? '', claim?.status?.ips?.join(' ') ?? ''];
    }),
  );
  narrator.table(['RESPONDER', 'NODE', 'ITS OWN ADDRESSES'], rows);
  const nodes = new Set(rows.map(([, node]) => node));
  narrator.check('two responders of Holdfast run, on different nodes', pods.length === 2 && nodes.size === 2);
}

/** Prints the leases that the DHCP clients report, which must be the addresses of the claim. */
export async function checkClients(
  { narrator }: CheckContext,
  clients: Readonly<Record<string, RunningClient>>,
  ips: readonly string[],
): Promise<void> {
  const leased: string[] = [];
  for (const [name, client] of Object.entries(clients)) {
    const lease = await client.waitForLease().catch(() => undefined);
    narrator.show(`${name} in the guest`, lease ? describeLease(lease) : 'has no lease');
    leased.push(lease?.ip ?? '');
  }
  const isSame = leased.sort().join() === ips.map(bareAddress).sort().join();
  narrator.check('the guest has leased the IPv4 and the IPv6 address of its claim', isSame && ips.length === 2);
}

function describeLease({ ip, seconds, dns }: Lease): string {
  return `leases ${ip ?? 'nothing'} for ${seconds ?? '?'} s, with name server ${dns ?? 'none'}`;
}

export async function checkGuestConfigured({ story, narrator }: CheckContext, claim: string): Promise<void> {
  const wait = story.addresses.waitForCondition(claim, GUEST_CONFIGURED, 'True').then(({ message }) => {
    narrator.show(`IPAMClaim ${claim}`, `${GUEST_CONFIGURED} True: ${message}`);
  });
  await narrator.checkSoon('the guest agent reports these addresses: the claim is GuestConfigured', wait);
}

/** Prints the network data of a VM, which must contain the addresses of its claim. */
export async function checkNetworkData(
  { story, narrator }: CheckContext,
  secret: string,
  ips: readonly string[],
): Promise<void> {
  const { data, type } = await story.client.get(SECRETS, story.ref(secret));
  const text = Buffer.from(data?.networkdata ?? '', 'base64').toString();
  narrator.show(`Secret ${secret}`, type ?? '');
  narrator.output(text.trimEnd().replaceAll(/^/gm, '  '));
  const isComplete = ips.every((ip) => text.includes(`"${ip}"`));
  narrator.check('the Secret has the same addresses, for guests with cloud-init', isComplete);
}

/** Prints how long an address did not answer. It must answer at the end. */
export function checkPings({ narrator }: CheckContext, target: string, result: PingResult): void {
  narrator.show(`pings to ${target}`, describePings(result));
  const isReached = result.received > 0 && !isSilentAtEnd(result);
  narrator.check(`the neighbour reaches ${target} after the migration`, isReached);
}
