import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from '../../bed/build/cache.js';
import { capture } from '../../bed/processes/processes.js';

/** The npm package of Node.js for each platform, with its version and checksum, as `node-<process.platform>-<process.arch>`. */
const SOURCE = join(import.meta.dirname, 'node');
const PACKAGE_FILES = ['package.json', 'package-lock.json'];

/** Node.js for one platform, as npm has it. */
export interface NodePackage {
  readonly name: string;
  readonly version: string;
  /** Of its tarball, as npm writes it: `sha512-…`. */
  readonly integrity: string;
  /** The name of the program in the package. */
  readonly binary: string;
}

interface LockEntry extends Omit<NodePackage, 'name' | 'binary'> {
  readonly name?: string;
  readonly bin: { readonly node: string };
}

/** @returns packages by the names of their platforms, such as `linux-x64` */
export async function nodePackages(): Promise<ReadonlyMap<string, NodePackage>> {
  const { packages } = JSON.parse(await readFile(join(SOURCE, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockEntry>;
  };
  const { '': _root, ...entries } = packages;
  return new Map(
    Object.entries(entries).map(([path, { name, version, integrity, bin }]) => {
      const alias = path.replace('node_modules/', '');
      return [alias.replace('node-', ''), { name: name ?? alias, version, integrity, binary: bin.node }];
    }),
  );
}

/** Returns the major version of Node.js that the image has. */
export async function lineOfImage(): Promise<number> {
  const versions = new Set([...(await nodePackages()).values()].map(({ version }) => version));
  const [version, ...others] = versions;
  if (version === undefined || others.length > 0)
    throw new Error(`${SOURCE} names Node.js ${[...versions].join(' and ')}`);
  return Number(version.split('.')[0]);
}

/**
 * Returns the path of a Node.js of the line that the image has: the running one, or that of npm, which is downloaded once.
 * Platforms for which npm has none use the running one.
 */
export async function nodeOfImage(): Promise<string> {
  if (Number(process.versions.node.split('.')[0]) === (await lineOfImage())) return process.execPath;
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) return process.execPath;
  return join(await nodeFolder(`${process.platform}-${process.arch}`), 'bin', 'node');
}

const installed = new Map<string, Promise<string>>();

/** @returns the folder of the npm package of Node.js for a platform such as `linux-x64`, which is downloaded once */
export function nodeFolder(platform: string): Promise<string> {
  const folder = installed.get(platform) ?? install(platform);
  installed.set(platform, folder);
  return folder;
}

async function install(platform: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of PACKAGE_FILES) hash.update(await readFile(join(SOURCE, file)));
  const found = (await nodePackages()).get(platform);
  if (found === undefined) throw new Error(`${SOURCE} names no Node.js for ${platform}`);
  const [os = '', cpu = ''] = platform.split('-');
  const path = join('node_modules', `node-${platform}`);
  const folder = await cachedFolder(`node-${platform}-${hash.digest('hex').slice(0, 16)}`, async (scratch) => {
    for (const file of PACKAGE_FILES) await copyFile(join(SOURCE, file), join(scratch, file));
    const options = [`--os=${os}`, `--cpu=${cpu}`, '--ignore-scripts', '--no-audit', '--no-fund'];
    await capture('npm', ['ci', ...options], { cwd: scratch });
    if (!existsSync(join(scratch, path, found.binary))) throw new Error(`npm did not install ${path} of ${SOURCE}`);
  });
  return join(folder, path);
}
