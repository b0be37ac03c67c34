import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../source-files.js';
import type { ImageConfig, Stage, Step } from './dockerfile.js';

/** The stage that becomes the image, and what it sets. */
export interface FinalStage {
  readonly stage: Pick<Stage, 'steps'>;
  readonly config: Pick<ImageConfig, 'User' | 'WorkingDir' | 'Entrypoint' | 'Cmd'>;
}

/**
 * Reads the final stage of the Dockerfile without BuildKit, which must be compiled first.
 * @param tree the folder of the Dockerfile
 */
export async function readFinalStage(tree = ROOT): Promise<FinalStage> {
  const text = await readFile(join(tree, 'Dockerfile'), 'utf8');
  const instructions = [...text.slice(text.lastIndexOf('\nFROM ')).matchAll(/^([A-Z]+) (.+)$/gm)];
  const valueOf = (wanted: string) => {
    const value = instructions.find(([, name]) => name === wanted)?.[2];
    if (value === undefined) throw new Error(`the final stage of the Dockerfile has no ${wanted}`);
    return value;
  };
  const steps = instructions.flatMap(([, name, value = '']): Step[] => {
    if (name === 'WORKDIR') return [{ kind: 'workdir', target: value }];
    if (name !== 'COPY') return [];
    const [, from, paths = ''] = /^--from=(\S+) (.+)$/.exec(value) ?? [];
    const sources = paths.split(' ');
    return [{ kind: 'copy', from: from!, target: sources.pop()!, sources }];
  });
  const config = {
    User: valueOf('USER'),
    WorkingDir: valueOf('WORKDIR'),
    Entrypoint: JSON.parse(valueOf('ENTRYPOINT')) as string[],
    Cmd: JSON.parse(valueOf('CMD')) as string[],
  };
  return { stage: { steps }, config };
}
