import type { BedWithHoldfast } from '../../bed/environment.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import type { Story } from '../../bed/story/story.js';
import { until } from '../../bed/processes/wait.js';
import { SERVED_NETWORKS_CONFIG_MAP } from '../../api/names.js';
import { ADDRESS_POOLS, CONFIG_MAPS, IPAM_CLAIMS } from '../../kube/resources.js';
import { runLoad } from '../load.js';
import type { Figure } from '../report.js';

const POOLS = 300;
const WRITES = 200;
/** The policies may not evaluate the pools one by one. */
const MOST_OF_FEW = 1.5;

/** Measures writes of a claim's status, for another IPAM, with few and with many pools. */
export async function benchStatusWrites({ client }: BedWithHoldfast, { namespace }: Story): Promise<Figure[]> {
  const metadata = { namespace, name: 'of-another-ipam' };
  await client.create(IPAM_CLAIMS, { metadata, spec: { network: 'without-pool', interface: 'net1' } });
  const measure = async () => {
    const write = async (n: number) => {
      const body = { status: { ips: [`192.0.2.${n % 250}/24`] } };
      await client.patch(IPAM_CLAIMS, metadata, { type: 'merge', body }, { subresource: 'status' });
    };
    await runLoad(write, { count: WRITES, concurrency: 1 }); // warm up
    return (await runLoad(write, { count: WRITES, concurrency: 1 })).p50Ms;
  };
  const few = await measure();
  const names = Array.from({ length: POOLS }, (_, n) => `${namespace}-${n}`);
  const create = (n: number) => {
    const spec = { network: names[n] ?? '', subnets: [{ cidr: '198.51.100.0/24' }], namespaces: [namespace] };
    return client.create(ADDRESS_POOLS, { metadata: { name: names[n] ?? '' }, spec }).then(() => undefined);
  };
  await runLoad(create, { count: POOLS, concurrency: 8 });
  const list = { namespace: HOLDFAST_NAMESPACE, name: SERVED_NETWORKS_CONFIG_MAP };
  await until('ipam has listed the networks', async () => {
    const { data = {} } = await client.get(CONFIG_MAPS, list);
    return names.every((name) => data[`network.${name}`] !== undefined);
  });
  const many = await measure();
  for (const name of names) await client.delete(ADDRESS_POOLS, { name });
  await client.delete(IPAM_CLAIMS, metadata);
  return [
    { name: 'status of a claim of another IPAM: p50', value: few, unit: 'ms' },
    { name: `status of a claim of another IPAM: p50 with ${POOLS} more pools`, value: many, unit: 'ms' },
    {
      ...{ name: `status of a claim of another IPAM: with ${POOLS} more pools, of that without`, value: many / few },
      ...{ unit: '', target: { atMost: MOST_OF_FEW } },
    },
  ];
}
