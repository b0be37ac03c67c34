import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { VERSION } from './version.js';

describe('VERSION', () => {
  it('is the version in package.json', async () => {
    const manifest = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
    expect(VERSION).to.equal(manifest.version);
  });
});
