import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildExecutable, nodeLicence } from './executable.js';
import type { PluginPlatform } from './platforms.js';
import type { ReleaseSettings } from './settings.js';

const BUNDLE = 'kubectl-holdfast.cjs';

/** A file of an archive. */
interface ArchivedFile {
  readonly source: string;
  /** In the archive. */
  readonly path: string;
  readonly isExecutable?: boolean;
}

export interface PluginArchive extends PluginPlatform {
  readonly file: string;
  /** The program in the archive. */
  readonly program: string;
  readonly sha256: string;
}

/**
 * Packs the kubectl plugin once for each platform, as an executable that needs no Node.js.
 * @param tree with a build in `dist/`
 * @param time of the files, in seconds since 1970
 */
export async function packPlugins(
  tree: string,
  target: string,
  { platforms, time }: { platforms: readonly PluginPlatform[]; time: number },
): Promise<PluginArchive[]> {
  const licences = [...licencesOf(tree), { source: await nodeLicence(), path: 'NODE-LICENSE.txt' }];
  const archives: PluginArchive[] = [];
  for (const platform of platforms) {
    const { os, arch } = platform;
    const program = os === 'windows' ? 'kubectl-holdfast.exe' : 'kubectl-holdfast';
    const executable = join(tree, 'dist', `${os}-${arch}`);
    await buildExecutable(join(tree, 'dist', BUNDLE), platform, executable);
    const file = `kubectl-holdfast_${os}_${arch}.tar.gz`;
    const files = [{ source: executable, path: program, isExecutable: true }, ...licences];
    await packFiles(files, join(target, file), time);
    await rm(executable);
    archives.push({ ...platform, file, program, sha256: await sha256Of(join(target, file)) });
  }
  return archives;
}

/** Packs the kubectl plugin for machines with Node.js, as a package that `npx URL` and `npm install --global URL` accept. */
export async function packForNpx(
  tree: string,
  target: string,
  { settings, time }: { settings: ReleaseSettings; time: number },
): Promise<void> {
  const { version, repository } = settings;
  const { description, license, engines } = JSON.parse(await readFile(join(tree, 'package.json'), 'utf8')) as Record<
    string,
    unknown
  >;
  const name = 'kubectl-holdfast';
  const manifest = { name, version, description, license, homepage: repository, bin: { [name]: BUNDLE }, engines };
  const source = join(tree, 'dist', 'package.json');
  await writeFile(source, `${JSON.stringify(manifest, undefined, 2)}\n`);
  const files: ArchivedFile[] = [
    { source, path: 'package.json' },
    { source: join(tree, 'dist', BUNDLE), path: BUNDLE, isExecutable: true },
    ...licencesOf(tree),
  ];
  const inPackage = files.map((file) => ({ ...file, path: `package/${file.path}` }));
  await packFiles(inPackage, join(target, `${name}-${version}.tgz`), time);
}

function licencesOf(tree: string): ArchivedFile[] {
  return ['LICENSE', 'dist/THIRD-PARTY-LICENSES.txt'].map((path) => ({
    source: join(tree, path),
    path: path.replace('dist/', ''),
  }));
}

async function packFiles(files: readonly ArchivedFile[], target: string, time: number): Promise<void> {
  const folder = await mkdtemp(`${target}-`);
  for (const { source, path, isExecutable = false } of files) {
    await cp(source, join(folder, path));
    await chmod(join(folder, path), isExecutable ? 0o755 : 0o644);
  }
  await packFolder(folder, target, time);
  await rm(folder, { recursive: true });
}

/** Packs the contents of a folder so that the same contents always give the same bytes. Needs GNU tar. */
async function packFolder(folder: string, target: string, time: number): Promise<void> {
  const normal = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mode=u+rw,go=rX', '--format=ustar'];
  const names = (await readdir(folder)).sort();
  execFileSync('tar', [
    ...['--create', '--file', target, '--use-compress-program=gzip --no-name', `--mtime=@${time}`],
    ...[...normal, '--directory', folder, '--', ...names],
  ]);
}

/** Packs an archive again, because helm writes the time of day into it. */
export async function repack(archive: string, time: number): Promise<void> {
  const folder = `${archive}.unpacked`;
  await mkdir(folder);
  execFileSync('tar', ['--extract', '--file', archive, '--directory', folder]);
  await packFolder(folder, archive, time);
  await rm(folder, { recursive: true });
}

/** The contents of `checksums.txt`, which `sha256sum --check` reads. */
export async function checksumsOf(folder: string, except: readonly string[]): Promise<string> {
  const files = (await readdir(folder)).filter((file) => !except.includes(file)).sort();
  const lines = await Promise.all(files.map(async (file) => `${await sha256Of(join(folder, file))}  ${file}\n`));
  return lines.join('');
}

async function sha256Of(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}
