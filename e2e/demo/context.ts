import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { PoolSubnet } from '../../api/address-pool.js';
import type { Story } from '../../bed/story/story.js';
import type { Faults } from './faults.js';
import type { Narrator } from './narrator.js';

/** Shared by all steps of the demo. */
export interface DemoContext {
  readonly story: Story;
  readonly narrator: Narrator;
  /** Undefined on a cluster that E2E_KUBECONFIG names: its processes are not killed. */
  readonly faults: Faults | undefined;
  /** The CNI network of the NAD blue. */
  readonly network: string;
  /** The AddressPool that was derived from the NAD blue. */
  readonly pool: string;
}

/** The VM that keeps its addresses, and its claim. */
export const VM = 'web';
export const CLAIM = 'web.data';

/** Only two IPv4 addresses, so that the loss of a stopped VM's address shows at once. */
export const SUBNETS: readonly PoolSubnet[] = [
  { cidr: '10.100.0.0/30' },
  { cidr: 'fd00:100::/64', ranges: ['fd00:100::10-fd00:100::1f'] },
];
export const CAPACITY = 2 + 16;

/** Long enough to be seen, short enough to wait for. A cluster's `--max-staleness` may make it longer. */
export const COOLDOWN_SECONDS = 5;
export const COOLED_WITHIN_MS = 150_000;

/** What the VM got and must keep. */
export interface Allocation {
  readonly claim: IPAMClaim;
  /** With prefix lengths, IPv4 first. */
  readonly ips: readonly string[];
  /** Address, without prefix length → UID of its lease. */
  readonly leases: ReadonlyMap<string, string>;
}
