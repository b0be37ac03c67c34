/** Why a suspect keeps its address. */

export type KeepReason = { kind: 'alive' } | { kind: 'changed' } | { kind: 'unknown'; why: string };
