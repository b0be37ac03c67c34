import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parseAddress } from '../../../addressing/address/address.js';
import { nftText } from '../testing/nft-text.js';
import { type GuardedPort, guardRules } from './claim-rules.js';

const run = promisify(execFile);
const GOLDEN = join(import.meta.dirname, 'golden');
const NAMES = { table: 'holdfast_example', device: 'lo', mac: '02:00:00:00:00:05' };
const NOBODY = { addresses: [], macs: [] };
const CLAIM: GuardedPort = {
  mode: 'Enforce',
  addresses: ['10.1.0.5', 'fd00:1::5'].map(parseAddress),
  allowed: NOBODY,
  isHeld: false,
  vlans: [],
};
const vlans = (first: number, last = first) => ({ first: BigInt(first), last: BigInt(last) });
const VIP = { family: 4, first: parseAddress('10.1.0.100').value, last: parseAddress('10.1.0.103').value } as const;
const CASES: Readonly<Record<string, GuardedPort>> = {
  enforce: CLAIM,
  observe: { ...CLAIM, mode: 'Observe', addresses: CLAIM.addresses.slice(0, 1) },
  hold: { ...CLAIM, mac: '02:00:00:00:00:07', isHeld: true },
  'observed-hold': { ...CLAIM, mode: 'Observe', isHeld: true },
  allowed: { ...CLAIM, allowed: { addresses: [VIP], macs: ['00:00:5e:00:01:0a'] } },
  trunk: { ...CLAIM, vlans: [vlans(101), vlans(200, 299)] },
};

/** Set it after a change of the rules, and read the difference. */
const WRITES_GOLDEN = process.env.UPDATE_GOLDEN !== undefined;

describe('the rules of a port', () => {
  for (const [name, port] of Object.entries(CASES)) {
    it(`are those of golden/${name}.nft, also as data for the plugin`, async () => {
      const rules = guardRules(port);
      const [text, data] = [nftText(rules, NAMES), `${JSON.stringify(rules)}\n`];
      const [textFile, dataFile] = [join(GOLDEN, `${name}.nft`), join(GOLDEN, `${name}.json`)];
      if (WRITES_GOLDEN) await Promise.all([writeFile(textFile, text), writeFile(dataFile, data)]);
      expect(text).to.equal(await readFile(textFile, 'utf8'));
      expect(data).to.equal(await readFile(dataFile, 'utf8'));
    });
  }

  it('are understood by nft', async function () {
    if (process.getuid?.() !== 0 || !(await hasNft())) this.skip();
    await Promise.all(Object.entries(CASES).map(([, port]) => check(nftText(guardRules(port), NAMES))));
  });

  it('drop in the last rule of each chain, and drop nothing but held frames if they only observe', () => {
    for (const { rules } of guardRules(CLAIM).chains) {
      expect(rules.at(-1)).to.include({ verdict: 'drop' }).and.to.have.property('matches').that.is.empty;
    }
    const observed = guardRules({ ...CLAIM, mode: 'Observe', isHeld: true }).chains.flatMap(({ rules }) => rules);
    const dropping = observed.filter(({ verdict }) => verdict === 'drop');
    expect(dropping.map(({ counts }) => counts)).to.deep.equal(['held']);
  });

  it('end a hold only by a reverse ARP of the own MAC address, and hold everything else before any other rule', () => {
    const [first, second] = guardRules({ ...CLAIM, isHeld: true }).chains[0]!.rules;
    expect(first!.matches.map(({ name }) => name)).to.include.members(['ether saddr', 'arp saddr ether']);
    expect(first!.matches.at(-1)).to.include({ op: 'delete', value: 'held' });
    expect(second).to.include({ counts: 'held', verdict: 'drop' });
  });

  it('join allowed addresses that overlap with those of the claim, which a set of nftables cannot have twice', () => {
    const own = parseAddress('10.1.0.5');
    const allowed = {
      macs: [NAMES.mac, NAMES.mac],
      addresses: [VIP, { family: 4, first: own.value, last: own.value } as const],
    };
    const { sets } = guardRules({ ...CLAIM, mac: NAMES.mac, allowed });
    expect(sets.find(({ name }) => name === 'ipv4')?.elements).to.deep.equal([
      '0a010005-0a010005',
      '0a010064-0a010067',
    ]);
    expect(sets.find(({ name }) => name === 'macs')?.elements).to.deep.equal(['020000000005']);
  });
});

/** Leaves out fields that old versions of nft do not know, and lookups of fields that have no name in nft. */
async function check(text: string): Promise<void> {
  const child = execFile('nft', ['--check', '--file', '-']);
  child.stdin?.end(text.replaceAll(/icmpv6 taddr (!= )?(@ipv6|& ffc0:: [!=]= fe80::)|@th,\d+,48 @macs/g, ''));
  let problem = '';
  child.stderr?.on('data', (part: string) => (problem += part));
  const [code] = (await once(child, 'close')) as [number];
  expect({ code, problem }).to.deep.equal({ code: 0, problem: '' });
}

async function hasNft(): Promise<boolean> {
  return run('nft', ['--version']).then(
    () => true,
    () => false,
  );
}
