import { randomInt } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runChaos } from './run.js';
import { isClean, markdown, type Report } from './report.js';

// make chaos [MINUTES=10] [SEED=number] [OUT=folder]: random faults while VMs and pods come and go. Ctrl-C ends it early, with a report.
const minutes = positive('MINUTES', '10');
const seed = Number(process.env.SEED || randomInt(2 ** 31));
if (!Number.isInteger(seed)) throw new Error(`SEED must be an integer, not "${process.env.SEED ?? ''}"`);
const out = process.env.OUT || undefined;
const ending = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => ending.abort());

const began = Date.now();
const say = (line: string) => {
  const elapsed = ((Date.now() - began) / 1000).toFixed(1).padStart(7);
  process.stdout.write(`${elapsed} s  ${line}\n`);
};

say(`SEED=${String(seed)} chooses the same faults again; ${String(minutes)} minutes`);
const report = await runChaos({ seed, minutes, say, signal: ending.signal, checkpoint: save });
await save(report);
process.stdout.write(`\n${markdown(report)}\n`);
process.exitCode = isClean(report) ? 0 : 1;

async function save(current: Report): Promise<void> {
  if (out === undefined) return;
  await mkdir(out, { recursive: true });
  await writeFile(join(out, 'chaos.json'), `${JSON.stringify(current, null, 1)}\n`);
  await writeFile(join(out, 'chaos.md'), `${markdown(current)}\n`);
}

function positive(name: string, otherwise: string): number {
  const text = process.env[name] || otherwise;
  const value = Number(text);
  if (!(value > 0)) throw new Error(`${name} must be a positive number, not "${text}"`);
  return value;
}
