import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launcherPage } from './html.js';

const COMMANDS: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

/** A file that opens a URL. Only its owner can read it, but every user of the machine can read the arguments of a process. */
export class LauncherFile {
  readonly path: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, 'holdfast.html');
  }

  static async write(url: string): Promise<LauncherFile> {
    const file = new LauncherFile(await mkdtemp(join(tmpdir(), 'holdfast-ui-')));
    await writeFile(file.path, launcherPage(url), { mode: 0o600 });
    return file;
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Opens a file in the user's browser. Nothing happens on a machine without one. */
export function openInBrowser(path: string, platform: NodeJS.Platform = process.platform): void {
  const [command, ...args] = COMMANDS[platform] ?? ['xdg-open'];
  const child = spawn(command, [...args, path], { stdio: 'ignore', detached: true });
  child.on('error', () => undefined);
  child.unref();
}
