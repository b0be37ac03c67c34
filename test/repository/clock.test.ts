import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { isTestCode } from './layers.js';
import { ROOT, findFiles } from '../source-files.js';

/** Each mention of a clock, and of Date if it is not for a given time. */
const TIME =
  /\b(?:performance|hrtime|uptime|Temporal)\b|\bnew Date\b(?!\([^)])|(?<!\bnew )\bDate\b(?!\.(?:parse|UTC)\()/g;

const timesIn = (text: string): string[] => text.match(TIME) ?? [];

describe('the time', () => {
  it('comes from a Clock: now() for ages and deadlines, wall() for times that objects carry', async () => {
    const files = [...(await findFiles('.ts')), ...(await findFiles('.tsx'))];
    const shipped = files.filter((file) => !isTestCode(file) && file !== 'kube/clock.ts');
    const found = shipped.map(async (file) => ({ file, times: timesIn(await readFile(join(ROOT, file), 'utf8')) }));
    expect((await Promise.all(found)).filter(({ times }) => times.length > 0)).to.deep.equal([]);
  });

  it('is found in each of its forms, also behind another name, and not in a date that is given', () => {
    const forms = ['Date.now()', 'performance.now()', 'process.hrtime()', 'process.uptime()', 'new Date()', 'Date()'];
    const renamed = ['const { now } = Date', 'const Day = Date', 'new globalThis.Date()', 'new Date', "Date['now']()"];
    const imported = ["import { hrtime } from 'node:process'", "import { performance as p } from 'node:perf_hooks'"];
    expect([...forms, ...renamed, ...imported].filter((form) => timesIn(form).length === 0)).to.deep.equal([]);
    expect(timesIn('new Date(0); Date.parse(text); Date.UTC(2026); clock.now()')).to.deep.equal([]);
  });
});
