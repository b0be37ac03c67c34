import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from '../../e2e/bed/cache.js';
import { capture } from '../../e2e/bed/processes.js';

/** The npm package of Node.js for each platform, with its version and checksum. */
const SOURCE = join(import.meta.dirname, 'node');
const PACKAGE_FILES = ['package.json', 'package-lock.json'];
const BINARY = join('node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');

/** Returns the major version of Node.js that the image has. */
export async function lineOfImage(): Promise<number> {
  const { optionalDependencies } = JSON.parse(await readFile(join(SOURCE, 'package.json'), 'utf8')) as {
    optionalDependencies: Record<string, string>;
  };
  const lines = new Set(Object.values(optionalDependencies).map((version) => Number(version.split('.')[0])));
  const [line, ...others] = lines;
  if (line === undefined || others.length > 0) throw new Error(`${SOURCE} names Node.js ${[...lines].join(' and ')}`);
  return line;
}

/**
 * Returns the path of a Node.js of the line that the image has: the running one, or that of npm, which is downloaded once.
 * Platforms for which npm has none use the running one.
 */
export async function nodeOfImage(): Promise<string> {
  if (Number(process.versions.node.split('.')[0]) === (await lineOfImage())) return process.execPath;
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) return process.execPath;
  return join(await installOnce(), BINARY);
}

let installed: Promise<string> | undefined;

function installOnce(): Promise<string> {
  installed ??= install();
  return installed;
}

async function install(): Promise<string> {
  const hash = createHash('sha256');
  for (const file of PACKAGE_FILES) hash.update(await readFile(join(SOURCE, file)));
  return cachedFolder(`node-${hash.digest('hex').slice(0, 16)}`, async (scratch) => {
    for (const file of PACKAGE_FILES) await copyFile(join(SOURCE, file), join(scratch, file));
    await capture('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: scratch });
    if (!existsSync(join(scratch, BINARY))) throw new Error(`npm did not install ${BINARY} of ${SOURCE}`);
  });
}
