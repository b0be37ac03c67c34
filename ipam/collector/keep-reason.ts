/** Why a lease that looks leaked is kept. */
export type KeepReason = { kind: 'alive' } | { kind: 'changed' } | { kind: 'unknown'; why: string };
