import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureCommand, ensureKubelet, ensureNetworkBinaries, type Progress } from '../../build/binaries.js';
import { cachedFolder } from '../../build/cache.js';
import { unpackPackages } from '../../build/debian-packages.js';
import { capture } from '../../processes/processes.js';

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

/** Of `make e2e NODES=real RUNTIME=containerd-2`, which takes the rest from the packages. */
const CONTAINERD_2 = { version: '2.2.1', tags: 'no_btrfs no_zfs no_devmapper' };
const isContainerd2 = process.env.RUNTIME === 'containerd-2';

/** Builds kubelet and the CNI plugins, and downloads the container runtime of this machine's distribution, both once. */
export async function ensureNodePrograms(progress: Progress): Promise<NodePrograms> {
  const [release, kubelet, plugins] = [
    await releaseOf(),
    await ensureKubelet(progress),
    await ensureNetworkBinaries(progress),
  ];
  const folder = `runtime-2-${release.replaceAll(/[^\w.]+/g, '-')}`;
  const runtime = await cachedFolder(
    isContainerd2 ? `${folder}containerd-${CONTAINERD_2.version}` : folder,
    async (scratch) => {
      await unpackPackages(PACKAGES, scratch);
      if (isContainerd2) await replaceContainerd(join(scratch, 'usr', 'bin'), progress);
    },
  );
  const version = await capture(join(runtime, 'usr/bin/containerd'), ['--version']);
  const containerd = version.split(' ').slice(0, 3).join(' ').trim();
  progress(`real nodes: kubelet, and ${containerd}${isContainerd2 ? '' : ` of ${release}`}`);
  return { kubelet, plugins, runtime };
}

async function replaceContainerd(folder: string, progress: Progress): Promise<void> {
  const { version, tags } = CONTAINERD_2;
  for (const name of ['containerd', 'ctr', 'containerd-shim-runc-v2']) {
    const command = `github.com/containerd/containerd/v2/cmd/${name}@v${version}`;
    await copyFile(await ensureCommand(command, progress, tags), join(folder, name));
  }
}

/** For people, for instance `Debian GNU/Linux 12 (bookworm)`: it decides which containerd runs. */
export async function releaseOf(): Promise<string> {
  return /^PRETTY_NAME="?([^"\n]*)/m.exec(await readFile('/etc/os-release', 'utf8'))?.[1] ?? 'an unknown release';
}
