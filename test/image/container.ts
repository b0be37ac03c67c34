import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ImageConfig } from './dockerfile.js';
import { nodeOfImage } from './node.js';

/** A folder or file of this machine in a container, as a volume of a pod. */
export interface Mount {
  readonly source: string;
  readonly target: string;
  readonly writable?: boolean;
}

export interface ContainerOptions {
  readonly args: readonly string[];
  /** Replaces the entry point of the image. */
  readonly entrypoint?: readonly string[];
  /** By default the user of the image. */
  readonly uid?: number;
  readonly mounts?: readonly Mount[];
  /** Variables besides those of the image. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A command line that becomes the container's process: signals reach it directly. */
export interface ContainerCommand {
  readonly command: string;
  readonly args: readonly string[];
}

const SETPRIV = '/.container/setpriv';

/** Makes the mounts of the container in a mount namespace of its own, which ends with its process. */
const START = `
root=$1; shift
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
  mount --bind "$1" "$root$2"
  [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"
  shift 3
done
shift
mount -o remount,bind,ro "$root"
exec chroot "$root" "$@"
`;

/** Why containers cannot be run here; undefined if they can. */
export function reasonAgainstContainers(): string | undefined {
  const probe = spawnSync('unshare', ['--mount', 'true'], { encoding: 'utf8' });
  if (probe.status === 0) return undefined;
  return `mount namespaces need Linux and root: ${(probe.error?.message ?? probe.stderr).trim()}`;
}

/** The image's files on top of a base that has Node.js and its libraries, but no shell, no users and nothing else. */
export class ImageRoot {
  readonly #root: string;
  readonly #config: ImageConfig;
  readonly #base: readonly Mount[];

  private constructor(root: string, config: ImageConfig, base: readonly Mount[]) {
    this.#root = root;
    this.#config = config;
    this.#base = base;
  }

  /** @param root the files that the image adds to its base */
  static async create(root: string, config: ImageConfig): Promise<ImageRoot> {
    const [node = ''] = config.Entrypoint;
    const base = [
      ...withLibraries([
        { source: await nodeOfImage(), target: node },
        { source: findProgram('setpriv'), target: SETPRIV },
      ]),
      ...['/dev/null', '/dev/urandom'].map((path) => ({ source: path, target: path, writable: true })),
      { source: '/proc', target: '/proc' },
    ];
    const image = new ImageRoot(root, config, base);
    await image.#addMountPoints(base);
    return image;
  }

  /** A container with the root file system read-only, without capabilities and without a way to get any. */
  async container({ args, entrypoint, uid, mounts = [], env = {} }: ContainerOptions): Promise<ContainerCommand> {
    await this.#addMountPoints(mounts);
    const [user = '', group = user] = uid === undefined ? this.#config.User.split(':') : [String(uid), String(uid)];
    const limits = [
      '--bounding-set=-all',
      '--inh-caps=-all',
      '--ambient-caps=-all',
      '--no-new-privs',
      '--clear-groups',
    ];
    const setpriv = [SETPRIV, `--reuid=${user}`, `--regid=${group}`, ...limits, '--'];
    const process = [...setpriv, ...(entrypoint ?? this.#config.Entrypoint), ...args];
    const binds = [...this.#base, ...mounts].flatMap(({ source, target, writable }) => [
      source,
      target,
      writable === true ? 'rw' : 'ro',
    ]);
    const variables = [...this.#config.Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
    const start = ['unshare', '--mount', 'sh', '-euc', START, 'sh', this.#root, ...binds];
    return { command: 'env', args: ['-i', ...variables, ...start, '--', ...process] };
  }

  /** Runs a container until it ends. */
  async run(options: ContainerOptions): Promise<{ status: number | null; stdout: string; stderr: string }> {
    const { command, args } = await this.container(options);
    return spawnSync(command, args, { encoding: 'utf8', timeout: 60_000 });
  }

  /** A file system that is read-only cannot get them later. */
  async #addMountPoints(mounts: readonly Mount[]): Promise<void> {
    for (const { source, target } of mounts) {
      const path = join(this.#root, target);
      const isFolder = spawnSync('test', ['-d', source]).status === 0;
      await mkdir(isFolder ? path : dirname(path), { recursive: true });
      if (!isFolder) await writeFile(path, '', { flag: 'a' });
    }
  }
}

/** The path of a program of this machine. */
export function findProgram(name: string): string {
  return spawnSync('sh', ['-c', 'command -v "$1"', 'sh', name], { encoding: 'utf8' }).stdout.trim();
}

/**
 * Programs with the shared libraries and loaders without which they do not start.
 * @param packages root of unpacked packages, whose libraries come before those of this machine
 */
export function withLibraries(programs: readonly Mount[], packages?: string): Mount[] {
  const libraries = new Set(programs.flatMap(({ source }) => librariesOf(source, packages)));
  const targetOf = (path: string) => (packages && path.startsWith(packages) ? path.slice(packages.length) : path);
  return [...programs, ...[...libraries].map((path) => ({ source: path, target: targetOf(path) }))];
}

/** The shared libraries of a program, and its loader. */
function librariesOf(program: string, packages?: string): string[] {
  const folders = ['lib', 'usr/lib'].flatMap((lib) => ['x86_64', 'aarch64'].map((arch) => `${lib}/${arch}-linux-gnu`));
  const env = packages && { ...process.env, LD_LIBRARY_PATH: folders.map((path) => join(packages, path)).join(':') };
  const { stdout } = spawnSync('ldd', [program], { encoding: 'utf8', ...(env && { env }) });
  return stdout.split('\n').flatMap((line) => /(?:=> |^\s*)(\/\S+) \(/.exec(line)?.[1] ?? []);
}
