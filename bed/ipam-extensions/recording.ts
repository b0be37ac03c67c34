import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RecordedCase } from './recorder.js';

/** Made by `e2e/peers/take-over.e2e.ts` with the variable UPDATE_RECORDING, and compared there with what the program writes. */
const RECORDING = join(import.meta.dirname, 'recorded-writes.json');

export async function readRecording(): Promise<RecordedCase[]> {
  return JSON.parse(await readFile(RECORDING, 'utf8')) as RecordedCase[];
}

export async function writeRecording(cases: readonly RecordedCase[]): Promise<void> {
  await writeFile(RECORDING, `${JSON.stringify(cases, undefined, 2)}\n`);
}

/** The writes that concern any workload with one network. */
export interface WriteTemplates {
  /** Creates the claim of a VM or of a VMI without a VM. */
  readonly creation: Readonly<Record<'VirtualMachine' | 'VirtualMachineInstance', unknown>>;
  /** Lets a claim go. */
  readonly release: unknown;
  /** Adds a reference to the one element of a launcher. */
  readonly patch: unknown;
}

export async function readTemplates(): Promise<WriteTemplates> {
  const cases = await readRecording();
  const caseOf = (wanted: string) => {
    const found = cases.find(({ title }) => title === wanted);
    if (found === undefined) throw new Error(`the recording has no case "${wanted}"`);
    return found;
  };
  const creationIn = (title: string) =>
    caseOf(title).writes.flatMap((write) => (write.method === 'POST' ? [write.body] : []))[0];
  return {
    creation: { VirtualMachine: creationIn('VM'), VirtualMachineInstance: creationIn('VMI without a VM') },
    release: caseOf('VM').writes.flatMap((write) => (write.method === 'PUT' ? [write.change] : []))[0],
    patch: caseOf('VM').patches[0],
  };
}

/** Replaces the placeholders of a template. */
export function fill(template: unknown, values: Readonly<Record<string, string>>): unknown {
  const text = JSON.stringify(template).replaceAll(/\$\{(\w+)\}/gu, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the template has the placeholder ${name}, which has no value`);
    return value;
  });
  return JSON.parse(text) as unknown;
}
