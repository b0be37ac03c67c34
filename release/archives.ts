import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A file of an archive. */
interface ArchivedFile {
  readonly source: string;
  /** In the archive. */
  readonly path: string;
  readonly isExecutable?: boolean;
}

/** The platforms that get an archive of the kubectl plugin, by the names of Go and krew. */
const PLATFORMS = ['linux', 'darwin', 'windows'].flatMap((os) => ['amd64', 'arm64'].map((arch) => ({ os, arch })));

export interface PluginArchive {
  readonly os: string;
  readonly arch: string;
  readonly file: string;
  /** The program in the archive. */
  readonly program: string;
  readonly sha256: string;
}

/** kubectl finds a plugin on Windows by the endings of PATHEXT. */
const WINDOWS_STARTER = '@node "%~dp0kubectl-holdfast.cjs" %*\r\n';

/**
 * Packs the kubectl plugin once for each platform. Today it is the same JavaScript everywhere; the names stay when each platform gets an
 * executable of its own.
 * @param tree with a build in `dist/`
 * @param time of the files, in seconds since 1970
 */
export async function packPlugins(tree: string, target: string, time: number): Promise<PluginArchive[]> {
  const starter = join(tree, 'dist', 'kubectl-holdfast.cmd');
  await writeFile(starter, WINDOWS_STARTER);
  const plugin = join(tree, 'dist', 'kubectl-holdfast.cjs');
  const licences = ['LICENSE', 'dist/THIRD-PARTY-LICENSES.txt'].map((path) => ({
    source: join(tree, path),
    path: path.replace('dist/', ''),
  }));
  const archives: PluginArchive[] = [];
  for (const { os, arch } of PLATFORMS) {
    const program = os === 'windows' ? 'kubectl-holdfast.cmd' : 'kubectl-holdfast';
    const programs =
      os === 'windows'
        ? [
            { source: starter, path: program },
            { source: plugin, path: 'kubectl-holdfast.cjs' },
          ]
        : [{ source: plugin, path: program, isExecutable: true }];
    const file = `kubectl-holdfast_${os}_${arch}.tar.gz`;
    await packFiles([...programs, ...licences], join(target, file), time);
    archives.push({ os, arch, file, program, sha256: await sha256Of(join(target, file)) });
  }
  return archives;
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
    ...['--create', '--file', target, '--use-compress-program=gzip --no-name -9', `--mtime=@${time}`],
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
