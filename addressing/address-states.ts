import type { PoolFamilyCounts } from '../api/address-pool.js';

/** Lines of the colour on that of the page. */
export type Hatching = 'rising' | 'falling' | 'level';

interface AddressStateInfo {
  /** In legends and lists. */
  readonly text: string;
  readonly meaning: string;
  /** On the map of a terminal, in ASCII and in Unicode. Default of the symbol: the letter. */
  readonly letter: string;
  readonly symbol?: string;
  /** On the web page, in the light and in the dark scheme. */
  readonly colours: readonly [string, string];
  /** How the page fills a place with the colour, for those who cannot tell colours apart. Default: completely. */
  readonly hatching?: Hatching;
  /** Somebody has the address, or it has another lease. Absent: it has none, or a reservation. */
  readonly use?: 'taken' | 'leased';
  /** It is a part of the capacity of the pool. */
  readonly isInCapacity?: true;
  /** The field of the pool's status that counts it. Metrics have such states as labels. States of the capacity without a field are counted as others. */
  readonly count?: CountField;
  /** The field is absent if it is 0. */
  readonly isOptional?: true;
}

/** A count in the status of a pool. Their sum is the capacity. */
export type CountField = Exclude<keyof PoolFamilyCounts, 'capacity'>;

/** The states of the addresses of a pool. What needs attention comes first: of several states in one cell, a map shows the first. */
const STATES = {
  draining: {
    text: 'in use in a draining range',
    meaning: 'in a draining range, and leased or reserved by an administrator',
    letter: 'd',
    colours: ['#a3151c', '#ff9a94'],
    ...{ use: 'taken', isInCapacity: true },
  },
  quarantined: {
    text: 'quarantined',
    meaning: 'a host that Holdfast does not know has it, so nobody gets it for a while',
    letter: 'q',
    colours: ['#3d4450', '#c4ccd8'],
    ...{ use: 'leased', isInCapacity: true, count: 'quarantined', isOptional: true },
  },
  'other-pool': {
    text: 'leased through another pool',
    meaning: 'leased through another pool of the same address space',
    letter: 'o',
    colours: ['#7a3b6e', '#e59bd3'],
    use: 'taken',
  },
  allocated: {
    text: 'allocated',
    meaning: 'it has an owner',
    ...{ letter: '#', symbol: '█' },
    colours: ['#1f5fbf', '#7fb0ff'],
    ...{ use: 'taken', isInCapacity: true, count: 'leased' },
  },
  cooling: {
    text: 'cooling down',
    meaning: 'its owner released it, and its cool-down has not ended or its lease is about to be deleted',
    letter: 'c',
    colours: ['#8a5a00', '#e8b44f'],
    hatching: 'falling',
    ...{ use: 'leased', isInCapacity: true, count: 'cooling' },
  },
  sticky: {
    text: 'kept for a MAC address',
    meaning: 'its owner released it, and it is kept for the MAC address of the owner while other addresses are free',
    letter: 's',
    colours: ['#6b4fa0', '#c0a6f5'],
    ...{ use: 'leased', isInCapacity: true },
  },
  free: {
    text: 'free',
    meaning: 'any claim or pod may get it',
    ...{ letter: '.', symbol: '·' },
    colours: ['#dbeadf', '#22382b'],
    ...{ isInCapacity: true, count: 'free' },
  },
  reserved: {
    text: 'reserved',
    meaning: 'allocated only on request, or reserved by an administrator',
    letter: 'r',
    colours: ['#0d6b62', '#5fd0c3'],
    hatching: 'rising',
    ...{ isInCapacity: true, count: 'reserved' },
  },
  drained: {
    text: 'drained',
    meaning: 'in a draining range, and not in use: nobody gets it again',
    letter: '-',
    colours: ['#8d8d97', '#9a9aa5'],
  },
  excluded: {
    text: 'never allocated',
    meaning: 'the network, broadcast or gateway address, excluded, or in no range',
    letter: 'x',
    colours: ['#747c8c', '#7a8599'],
    hatching: 'level',
  },
} as const satisfies Readonly<Record<string, AddressStateInfo>>;

type States = typeof STATES;
export type AddressState = keyof States;
export const ADDRESS_STATES: Readonly<Record<AddressState, AddressStateInfo>> = STATES;
/** In the order of {@link ADDRESS_STATES}. */
export const STATE_NAMES = Object.keys(STATES) as readonly AddressState[];

/** A state of addresses that are a part of the capacity of a pool. */
export type CapacityState = { [S in AddressState]: States[S] extends { isInCapacity: true } ? S : never }[AddressState];
export const CAPACITY_STATES = STATE_NAMES.filter((state): state is CapacityState => 'isInCapacity' in STATES[state]);

/** The counts in the status of a pool, each with the state that it counts. */
export const COUNTS = STATE_NAMES.flatMap((state) => {
  const { count: field, isOptional = false } = ADDRESS_STATES[state];
  return field === undefined ? [] : [{ state, field, isOptional }];
});

/** The page and all commands write larger counts as a power of ten. */
const LARGE = 10_000_000;

/** Formats a count: huge ones as a power of ten. */
export function formatCount(count: number | undefined): string {
  if (count === undefined) return '';
  return count < LARGE ? String(count) : count.toExponential(1).replace('e+', 'e');
}
