import { expect } from 'chai';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { REPLICAS, responderSet } from '../guest/responder-manager/objects.js';
import { compiledPool } from '../test/objects/lease-objects.js';

/** The default of --max-responder-pools. */
const MAX_POOLS = 32;
const UNITS: Record<string, number> = { '': 1, m: 1e-3, Mi: 2 ** 20, Gi: 2 ** 30 };

interface Quota {
  metadata: { name: string };
  spec: { hard: Record<string, string> };
}

function numberOf(quantity = ''): number {
  const [, digits, unit = ''] = /^(\d+)(\w*)$/.exec(quantity) ?? [];
  return Number(digits) * (UNITS[unit] ?? Number.NaN);
}

describe('the quota of responders', () => {
  let hard: Record<string, string> = {};

  before(async () => {
    const text = await readFile(join(import.meta.dirname, 'base', 'guest', 'responders.yaml'), 'utf8');
    const quotas = parseAllDocuments(text).map((each) => each.toJS() as Quota);
    hard = quotas.find(({ metadata }) => metadata.name === 'holdfast-responder-pods')?.spec.hard ?? {};
  });

  const settings = { image: 'holdfast:1.0.0', maxStalenessMs: 30_000, logLevel: 'info', template: {} };
  const set = responderSet(compiledPool({ guest: { attachment: 'blue', dhcp: {} } }), 'blue', settings);
  const { containers } = set.spec.template.spec as {
    containers: { resources: { requests: Record<string, string> } }[];
  };

  for (const resource of ['cpu', 'memory']) {
    it(`limits the ${resource} that they request, and has room for those of all pools and as many that replace them`, () => {
      const requests = containers.map(({ resources }) => numberOf(resources.requests[resource]));
      const most = 2 * MAX_POOLS * REPLICAS * requests.reduce((sum, each) => sum + each, 0);
      expect(numberOf(hard[`requests.${resource}`])).to.be.within(2 * most, 5 * most);
    });
  }
});
