import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const DOCKERFILE = join(import.meta.dirname, '..', '..', 'Dockerfile');

/** The flags with which the image runs Node.js, so that tests and benchmarks run what is shipped. */
export async function nodeFlags(): Promise<string[]> {
  const entrypoint = /^ENTRYPOINT (\[.*\])$/m.exec(await readFile(DOCKERFILE, 'utf8'))?.[1];
  if (entrypoint === undefined) throw new Error(`${DOCKERFILE} has no ENTRYPOINT in its JSON form`);
  return (JSON.parse(entrypoint) as string[]).filter((argument) => argument.startsWith('--'));
}
