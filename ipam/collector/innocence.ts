/** Why a suspect keeps its address. */

export type Innocence = { kind: 'alive' } | { kind: 'changed' } | { kind: 'unknown'; why: string };
