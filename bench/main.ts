import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { type BedWithHoldfast, startBedWithHoldfast } from '../e2e/environment.js';
import { Story } from '../e2e/story/story.js';
import { benchAddresses } from './addresses.js';
import { benchAdmissions } from './admissions.js';
import { benchBed } from './bed.js';
import { benchClaims } from './claims.js';
import { benchMemory } from './memory.js';
import { type Figure, isMet, table } from './report.js';
import { benchStartup } from './startup.js';

// npm run bench [-- --json=FILE] [admissions] [claims] [memory] [startup] [bed]
const BENCHES: Record<string, (bed: BedWithHoldfast, story: Story) => Promise<Figure[]>> = {
  admissions: benchAdmissions,
  claims: benchClaims,
  memory: benchMemory,
  startup: benchStartup,
  bed: benchBed,
  addresses: benchAddresses, // last: it leaves 200,000 leases behind
};

const { values, positionals } = parseArgs({ options: { json: { type: 'string' } }, allowPositionals: true });
const chosen = positionals.length > 0 ? positionals : Object.keys(BENCHES);
const unknown = chosen.filter((name) => BENCHES[name] === undefined);
if (unknown.length > 0) throw new Error(`no bench ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}`);

const progress = (line: string) => process.stderr.write(`  ${line}\n`);
const bed = await startBedWithHoldfast(progress);
const figures: Figure[] = [];
try {
  for (const name of chosen) {
    progress(`bench ${name}`);
    const environment = { client: bed.client, kubeconfig: bed.kubeconfig, bed, stop: () => bed.stop() };
    const story = await Story.begin(environment);
    figures.push(...(await BENCHES[name]!(bed, story)));
    await story.end();
  }
} finally {
  await bed.stop();
}

process.stdout.write(`${table(figures)}\n`);
const json = JSON.stringify(
  { node: process.version, figures: figures.map((one) => ({ ...one, met: isMet(one) })) },
  null,
  2,
);
if (values.json === undefined) process.stdout.write(`${json}\n`);
else await writeFile(values.json, `${json}\n`);
process.exitCode = figures.some((figure) => isMet(figure) === false) ? 1 : 0;
