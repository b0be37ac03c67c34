import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { BITS, formatAddress, parseAddress } from '../../../addressing/address/address.js';
import { type GuardedPort, guardRules } from './claim-rules.js';
import { type Match, type Rule, type RuleSet, type RuleSetMembers, OWN_MAC } from './rule-set.js';

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

interface PortNames {
  readonly table: string;
  readonly device: string;
  readonly mac: string;
}

/** Writes the rules in the language of nft, for people, and for `nft --check`. */
function nftText({ mode, sets, chains }: RuleSet, { table, device, mac }: PortNames): string {
  const counters = new Set(chains.flatMap(({ rules }) => rules.flatMap(({ counts }) => counts ?? [])));
  const hook = `    type filter hook ingress device "${device}" priority -100; policy ${mode === 'Enforce' ? 'drop' : 'accept'};`;
  const lines = [
    `table netdev ${table} {`,
    ...[...counters].map((name) => `  counter ${name} { }`),
    ...sets.map((set) => `  ${setText(set, mac)}`),
    // a chain must be known before a rule goes to it
    ...chains
      .toReversed()
      .flatMap(({ name, rules }) => [
        `  chain ${name} {`,
        ...(name === chains[0]?.name ? [hook] : []),
        ...rules.map((rule) => `    ${ruleText(rule, mac)}`),
        '  }',
      ]),
    '}',
  ];
  return `${lines.join('\n')}\n`;
}

function setText({ name, type, elements, isInterval, timeoutSeconds }: RuleSetMembers, mac: string): string {
  const flags = [
    ...(isInterval === true ? ['flags interval;'] : []),
    ...(timeoutSeconds === undefined ? [] : [`flags dynamic,timeout; timeout ${timeoutSeconds}s; size 4;`]),
  ];
  const shown = elements.map((each) => (each === OWN_MAC ? mac : elementText(each)));
  const listed = shown.length === 0 ? [] : [`elements = { ${shown.join(', ')} }`];
  return `set ${name} { ${[`type ${type};`, ...flags, ...listed].join(' ')} }`;
}

function elementText(element: string): string {
  const [first = '', last = first] = element.split('-');
  return first === last ? valueText(first) : `${valueText(first)}-${valueText(last)}`;
}

function ruleText({ matches, counts, verdict }: Rule, mac: string): string {
  const counted = counts === undefined ? [] : [`counter name "${counts}"`];
  return [...matches.map((match) => matchText(match, mac)), ...counted, verdict].join(' ');
}

function matchText({ name, op, value, mask }: Match, mac: string): string {
  const isRaw = name.startsWith('@');
  const masked = mask === undefined ? name : `${name} & ${isRaw ? `0x${mask}` : valueText(mask)}`;
  if (op === 'delete') return `delete @${value} { ${masked} }`;
  if (op === 'in') return `${masked} @${value}`;
  if (op === 'not in') return `${masked} != @${value}`;
  if (value === OWN_MAC) return `${masked} ${mac}`;
  const shown = isRaw || name === 'ether type' ? `0x${value}` : valueText(value);
  return op === '==' && mask === undefined ? `${masked} ${shown}` : `${masked} ${op} ${shown}`;
}

/** Writes hexadecimal digits as an address of that length, or as a number. */
function valueText(hex: string): string {
  const bits = hex.length * 4;
  const value = BigInt(`0x${hex}`);
  if (bits === 48) return hex.replaceAll(/(..)(?=.)/g, '$1:');
  if (bits === BITS[4]) return formatAddress({ family: 4, value });
  return bits === BITS[6] ? formatAddress({ family: 6, value }) : String(value);
}
