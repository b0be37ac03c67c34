import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { isTestCode } from './layers.js';
import { ROOT, findFiles } from '../source-files.js';

const TIME = /\b(?:(?:Date|performance)\.now|process\.(?:hrtime|uptime))\b|\bnew Date\(\)|(?<![\w.])Date\(\)/g;

const timesIn = (text: string): string[] => text.match(TIME) ?? [];

describe('the time', () => {
  it('comes from a Clock: now() for ages and deadlines, wall() for times that objects carry', async () => {
    const files = [...(await findFiles('.ts')), ...(await findFiles('.tsx'))];
    const shipped = files.filter((file) => !isTestCode(file) && file !== 'kube/clock.ts');
    const found = shipped.map(async (file) => ({ file, times: timesIn(await readFile(join(ROOT, file), 'utf8')) }));
    expect((await Promise.all(found)).filter(({ times }) => times.length > 0)).to.deep.equal([]);
  });

  it('is found in each of its forms, and not in a date that is given', () => {
    const forms = ['Date.now()', 'performance.now()', 'process.hrtime()', 'process.uptime()', 'new Date()', 'Date()'];
    expect(timesIn(`${forms.join('; ')}; new Date(0); clock.now()`)).to.have.length(forms.length);
  });
});
