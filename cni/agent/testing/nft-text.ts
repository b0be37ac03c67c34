import { BITS, formatAddress } from '../../../addressing/address/address.js';
import { type Match, type Rule, type RuleSet, type RuleSetMembers, OWN_MAC } from '../guard/rule-set.js';

interface PortNames {
  readonly table: string;
  readonly device: string;
  readonly mac: string;
}

/** Writes the rules in the language of nft, for people, and for `nft --check`. */
export function nftText({ mode, sets, chains }: RuleSet, { table, device, mac }: PortNames): string {
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
