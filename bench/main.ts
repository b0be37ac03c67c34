import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { type BedWithHoldfast, startBedWithHoldfast } from '../bed/environment.js';
import { Story } from '../bed/story/story.js';
import { benchAddresses } from './ipam/addresses.js';
import { benchAdmissions } from './admissions.js';
import { benchAllocator } from './ipam/allocator.js';
import { benchBlocks } from './blocks.js';
import { benchCapacity } from './capacity.js';
import { benchChurn } from './scale/churn.js';
import { benchClaims } from './claims.js';
import { benchCni } from './cni.js';
import { benchDhcpServers } from './guest/dhcp-servers.js';
import { benchFirstPatch } from './scale/first-patch.js';
import { benchGuard } from './guard.js';
import { benchGuest } from './guest/guest.js';
import { benchGuestNetworks } from './guest/guest-networks.js';
import { benchGuestTables } from './guest/guest-tables.js';
import { benchHostileReviews } from './hostile/reviews.js';
import { benchHostileWrites } from './hostile/writes.js';
import { benchLeaseChurn } from './ipam/lease-churn.js';
import { benchLeaseCost } from './ipam/lease-cost.js';
import { benchMigration } from './migration.js';
import { type Figure, isMet, table } from './report.js';
import { benchExpiry, benchScale } from './scale/scale.js';
import { benchResponderMemory } from './guest/responder-memory.js';
import { benchStatusWrites } from './ipam/status-writes.js';
import { benchUi } from './ui.js';
import { benchWatches } from './watches.js';
import { benchWhereabouts } from './whereabouts.js';

// npm run bench [-- --json=FILE --vms=100000 --claims=2 --leases=50000 --networks=5000 --seconds=600 --attack=halted --parts] [allocator] [admissions] [hostile] [hostile-reviews] [status-writes] [claims] [ui] [addresses] [cni] [dhcp-servers] [guard] [guest] [guest-networks] [guest-tables] [migration] [responder-memory] [whereabouts] [blocks] [capacity] [scale] [expiry] [first-patch] [churn] [watches] [lease-churn] [lease-cost]
/** Benches that need no test bed. */
const ALONE: Record<string, () => Promise<Figure[]>> = {
  allocator: benchAllocator,
  blocks: benchBlocks,
  capacity: benchCapacity,
  churn: () => benchChurn(Number(values.seconds)),
  cni: benchCni,
  'dhcp-servers': benchDhcpServers,
  expiry: () => benchExpiry(Number(values.leases)),
  'first-patch': benchFirstPatch,
  guard: benchGuard,
  guest: benchGuest,
  'guest-networks': () => benchGuestNetworks(Number(values.networks)),
  'guest-tables': benchGuestTables,
  'lease-cost': () => benchLeaseCost(values.parts),
  migration: benchMigration,
  'responder-memory': benchResponderMemory,
  scale: () => benchScale(Number(values.vms), Number(values.claims)),
  watches: benchWatches,
  whereabouts: benchWhereabouts,
};
const BENCHES: Record<string, (bed: BedWithHoldfast, story: Story) => Promise<Figure[]>> = {
  admissions: benchAdmissions,
  hostile: (bed, story) => benchHostileWrites(bed, story, values.attack),
  'hostile-reviews': benchHostileReviews,
  'status-writes': benchStatusWrites,
  'lease-churn': (bed, story) => benchLeaseChurn(bed, story, Number(values.seconds)),
  claims: benchClaims,
  ui: benchUi,
  addresses: benchAddresses, // last: it leaves 200,000 leases behind
};

const { values, positionals } = parseArgs({
  options: {
    json: { type: 'string' },
    vms: { type: 'string', default: '10000' },
    claims: { type: 'string', default: '1' },
    leases: { type: 'string', default: '50000' },
    networks: { type: 'string', default: '5000' },
    seconds: { type: 'string', default: '120' },
    attack: { type: 'string', default: '' },
    parts: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const known = [...Object.keys(ALONE), ...Object.keys(BENCHES)];
const chosen = positionals.length > 0 ? positionals : known;
const unknown = chosen.filter((name) => !known.includes(name));
if (unknown.length > 0) throw new Error(`unknown bench ${unknown.join(', ')}; available: ${known.join(', ')}`);

const progress = (line: string) => process.stderr.write(`  ${line}\n`);
const figures: Figure[] = [];
for (const name of chosen.filter((each) => ALONE[each] !== undefined)) {
  progress(`bench ${name}`);
  figures.push(...(await ALONE[name]!()));
}
const onBed = chosen.filter((name) => BENCHES[name] !== undefined);
if (onBed.length > 0) figures.push(...(await runOnBed(onBed)));

process.stdout.write(`${table(figures)}\n`);
const judged = figures.map((one) => ({ ...one, met: isMet(one) }));
const json = JSON.stringify({ node: process.version, figures: judged }, null, 2);
if (values.json === undefined) process.stdout.write(`${json}\n`);
else await writeFile(values.json, `${json}\n`);
process.exitCode = figures.some((figure) => isMet(figure) === false) ? 1 : 0;

/** Runs benches one after the other on one control plane. */
async function runOnBed(names: readonly string[]): Promise<Figure[]> {
  const bed = await startBedWithHoldfast(progress);
  const found: Figure[] = [];
  try {
    for (const name of names) {
      progress(`bench ${name}`);
      const environment = { client: bed.client, kubeconfig: bed.kubeconfig, bed, stop: () => bed.stop() };
      const story = await Story.begin(environment);
      found.push(...(await BENCHES[name]!(bed, story)));
      await story.end();
    }
  } finally {
    await bed.stop();
  }
  return found;
}
