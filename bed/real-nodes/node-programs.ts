import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureKubelet, ensureNetworkBinaries, type Progress } from '../build/binaries.js';
import { cachedFolder } from '../build/cache.js';
import { unpackPackages } from '../build/debian-packages.js';
import { capture } from '../processes/processes.js';

/** What runs on a real node, by path. */
export interface NodePrograms {
  readonly kubelet: string;
  /** Root of the unpacked packages, with containerd, ctr, runc and busybox. */
  readonly runtime: string;
  /** The folder with the plugins that a node has before Multus and Holdfast come. */
  readonly plugins: string;
}

/** busybox has the ping that pods use. */
const PACKAGES = ['containerd', 'runc', 'libseccomp2', 'busybox-static'];

/** Builds kubelet and the CNI plugins, and downloads the container runtime of this machine's distribution, both once. */
export async function ensureNodePrograms(progress: Progress): Promise<NodePrograms> {
  const [release, kubelet, plugins] = [
    await releaseOf(),
    await ensureKubelet(progress),
    await ensureNetworkBinaries(progress),
  ];
  const folder = `runtime-2-${release.replaceAll(/[^\w.]+/g, '-')}`;
  const runtime = await cachedFolder(folder, (scratch) => unpackPackages(PACKAGES, scratch));
  const { stdout: version } = { stdout: await capture(join(runtime, 'usr/bin/containerd'), ['--version']) };
  progress(`real nodes: kubelet, and ${version.split(' ').slice(0, 3).join(' ').trim()} of ${release}`);
  return { kubelet, plugins, runtime };
}

/** For people, for instance `Debian GNU/Linux 12 (bookworm)`: it decides which containerd runs. */
async function releaseOf(): Promise<string> {
  return /^PRETTY_NAME="?([^"\n]*)/m.exec(await readFile('/etc/os-release', 'utf8'))?.[1] ?? 'an unknown release';
}
