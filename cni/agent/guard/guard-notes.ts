import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { asRecord, asString, isRecord } from '../../../api/json.js';
import { ifAbsent } from '../file-errors.js';

/** The folder in `--run-dir` that the plugin (cni/plugin/guard.go) and the counting of drops (cni/plugin/counters.go) write. */
export const GUARDS_FOLDER = 'guards';

/** Whose port it is. The agent sends it with the rules, and the plugin notes it. */
export interface GuardSubject {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid?: string;
  readonly interfaceName: string;
  /** Name of the claim, which is in the namespace of the pod. */
  readonly claim?: string;
  readonly pool: string;
  /** The namespace of the NADs from which the pool was derived. */
  readonly nadNamespace?: string;
}

/** A port that has rules, on which they could not be applied, or which has lost them. */
export interface GuardNote {
  /** Of the table. */
  readonly name: string;
  readonly mode: string;
  /** Counters inside of a pod, those of macvlan interfaces, cannot be read. */
  readonly state: 'applied' | 'uncounted' | 'failed';
  readonly failure?: string;
  readonly subject: GuardSubject;
}

/** By table: how many packets were dropped, or would be, by name of the counter. */
export type DropCounts = ReadonlyMap<string, Readonly<Record<string, number>>>;

const NOTE_NAME = /^holdfast_[0-9a-f]{24}$/;
const COUNTERS_FILE = 'counters.json';
/** cni/plugin/kernel.go writes it. */
const REFUSAL_FILE = 'kernel-refusal';
/** Of the text that goes into an event. */
const MAX_REFUSAL_CHARACTERS = 512;
/** A node has at most some hundred pods; each port takes less than a KiB. */
const MAX_NOTES = 8192;
const MAX_COUNTERS_BYTES = 8 * 1024 * 1024;
/** They are written every 10 s. */
const COUNTERS_MAX_AGE_MS = 60_000;

/** Reads the notes of a node. Those that are being written are left out. */
export async function readGuardNotes(folder: string): Promise<GuardNote[]> {
  const names = await readdir(folder).catch(ifAbsent([]));
  const notes: GuardNote[] = [];
  for (const name of names.filter((each) => NOTE_NAME.test(each)).slice(0, MAX_NOTES)) {
    const note = parseNote(name, await readFile(join(folder, name), 'utf8').catch(ifAbsent('')));
    if (note !== undefined) notes.push(note);
  }
  return notes;
}

/** @param now of the wall clock @returns the counts, and when they were written; undefined if nobody counts */
export async function readDropCounts(
  folder: string,
  now: number,
): Promise<{ readonly counts: DropCounts; readonly at: number } | undefined> {
  const path = join(folder, COUNTERS_FILE);
  const found = await stat(path).catch(ifAbsent(undefined));
  if (found === undefined || Math.abs(now - found.mtimeMs) > COUNTERS_MAX_AGE_MS) return undefined;
  if (found.size > MAX_COUNTERS_BYTES) throw new Error(`${path} has more than ${MAX_COUNTERS_BYTES} bytes`);
  const tables = Object.entries(asRecord(JSON.parse(await readFile(path, 'utf8'))));
  return { counts: new Map(tables.map(([table, counts]) => [table, numbersOf(counts)])), at: found.mtimeMs };
}

/** @returns why the kernel of this node cannot guard; undefined if it can, or nobody has tried */
export async function readKernelRefusal(folder: string): Promise<string | undefined> {
  const text = await readFile(join(folder, REFUSAL_FILE), 'utf8').catch(ifAbsent(undefined));
  return text?.slice(0, MAX_REFUSAL_CHARACTERS);
}

function parseNote(name: string, text: string): GuardNote | undefined {
  const { index, mode, failure, subject } = parseObject(text);
  // a plugin of an older version notes no subject
  if (!isRecord(subject)) return undefined;
  const { namespace, pod, podUid, interfaceName, claim, pool, nadNamespace } = subject;
  return {
    name,
    mode: asString(mode),
    state: typeof failure === 'string' ? 'failed' : index === 0 ? 'uncounted' : 'applied',
    ...(typeof failure === 'string' && { failure }),
    subject: {
      ...{ namespace: asString(namespace), pod: asString(pod), interfaceName: asString(interfaceName) },
      ...{ pool: asString(pool) },
      ...(typeof podUid === 'string' && { podUid }),
      ...(typeof claim === 'string' && { claim }),
      ...(typeof nadNamespace === 'string' && { nadNamespace }),
    },
  };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return asRecord(JSON.parse(text));
  } catch {
    return {};
  }
}

function numbersOf(value: unknown): Record<string, number> {
  const numbers = Object.entries(asRecord(value)).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  );
  return Object.fromEntries(numbers);
}
