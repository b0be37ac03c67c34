import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from '../../../bed/build/cache.js';
import { capture } from '../../../bed/processes/processes.js';

/** Of Debian or Ubuntu. They are unpacked into the cache, and nothing is installed. */
const PACKAGES = ['cloud-init', 'netplan.io', 'libnetplan0'];
/** What the conversion needs of Python. */
const MODULES = ['configobj==5.0.9', 'jinja2==3.1.6', 'pyyaml==6.0.3', 'requests', 'jsonpatch'];
const LIBRARIES = ['usr/lib/x86_64-linux-gnu', 'usr/lib/aarch64-linux-gnu'];

export interface ConversionJob {
  readonly file: string;
  readonly kind: 'yaml' | 'network_data.json';
  readonly renderer: string;
  readonly distro: string;
  readonly out: string;
}

/** cloud-init and netplan of this machine's distribution. */
export class CloudInit {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** @throws {Error} if a package cannot be downloaded */
  static async get(): Promise<CloudInit> {
    return new CloudInit(await cachedFolder('cloud-init', unpack));
  }

  /** Converts network data to the files of other network services. @param names of interfaces by MAC address */
  async convert(names: Readonly<Record<string, string>>, jobs: readonly ConversionJob[]): Promise<void> {
    const path = ['usr/lib/python3/dist-packages', 'site'].map((part) => join(this.#folder, part)).join(':');
    const script = join(import.meta.dirname, 'convert.py');
    await capture('python3', [script, JSON.stringify({ names, jobs })], { env: { ...process.env, PYTHONPATH: path } });
  }

  /** Lets netplan write the files of systemd-networkd. @param root with `etc/netplan` */
  async generate(root: string): Promise<void> {
    const libraries = LIBRARIES.map((part) => join(this.#folder, part)).join(':');
    const env = { ...process.env, LD_LIBRARY_PATH: libraries };
    await capture(join(this.#folder, 'usr/libexec/netplan/generate'), ['--root-dir', root], { env });
  }
}

async function unpack(scratch: string): Promise<void> {
  const download = () => capture('apt-get', ['download', '--quiet', ...PACKAGES], { cwd: scratch });
  // a container image has no package lists, or old ones
  await download().catch(() => capture('apt-get', ['update', '--quiet']).then(download));
  for (const name of await readdir(scratch))
    if (name.endsWith('.deb')) await capture('dpkg-deb', ['--extract', join(scratch, name), scratch]);
  const options = ['install', '--quiet', '--disable-pip-version-check', '--root-user-action=ignore'];
  await capture('python3', ['-m', 'pip', ...options, '--target', join(scratch, 'site'), ...MODULES]);
}

/** The text of all files in a folder, each after its path. */
export async function textsIn(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const texts = await Promise.all(
    files.sort().map(async (file) => `# ${file.slice(folder.length)}\n${await readFile(file, 'utf8')}`),
  );
  return texts.join('\n');
}
