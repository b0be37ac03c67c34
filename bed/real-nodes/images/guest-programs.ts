import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withLibraries } from '../../../test/image/container.js';
import { ensureLauncher, type Progress } from '../../build/binaries.js';
import { cachedFolder } from '../../build/cache.js';
import { missingLibraries, unpackPackages } from '../../build/debian-packages.js';
import { capture } from '../../processes/processes.js';
import { releaseOf } from './node-programs.js';

/** What launcher pods need to run guests, by path. */
export interface GuestPrograms {
  /** It stands for virt-launcher and virt-handler: bed/go/virt-launcher. */
  readonly launcher: string;
  /** Root of the unpacked packages, with QEMU and its firmware. */
  readonly root: string;
  readonly kernel: string;
  readonly initrd: string;
}

const KERNEL = 'linux-image-cloud-amd64';
const QEMU = 'qemu-system-x86';
/** KubeVirt's code calls nft for the masquerade binding, and xorrisofs for the disk of cloud-init. */
const PACKAGES = [
  ...[QEMU, 'qemu-system-common', 'qemu-system-data', 'seabios', 'nftables', 'xorriso'],
  ...['busybox-static', 'qemu-guest-agent', 'ifupdown', 'wide-dhcpv6-client', 'libfl2'],
  // for network boot: firmware, what it loads, and a server of TFTP
  ...['ovmf', 'ipxe', 'dnsmasq-base'],
];

/** In the order in which they are loaded. The others that a guest needs are parts of Debian's kernel. */
const MODULES = [
  ...['virtio_ring', 'virtio', 'virtio_pci_modern_dev', 'virtio_pci_legacy_dev', 'virtio_pci'],
  ...['failover', 'net_failover', 'virtio_net', 'virtio_console', 'virtio_blk'],
  ...['cdrom', 'isofs', 'evdev', 'button'],
];

/** Besides busybox, by their path in the guest. */
const PROGRAMS = { 'bin/qemu-ga': 'usr/sbin/qemu-ga', 'sbin/ifup': 'sbin/ifup', 'sbin/dhcp6c': 'usr/sbin/dhcp6c' };

/** Of this repository, by their path in the guest. */
const SCRIPTS = { init: 'guest-init.sh', 'lib/udhcpc.sh': 'guest-udhcpc.sh' };

/** Builds the launcher, and downloads QEMU and a kernel for guests from this machine's distribution, all once. */
export async function ensureGuestPrograms(progress: Progress): Promise<GuestPrograms> {
  if (process.arch !== 'x64') throw new Error('guests need an x86-64 machine');
  const launcher = await ensureLauncher(progress);
  const release = (await releaseOf()).replaceAll(/[^\w.]+/g, '-');
  const root = await cachedFolder(`guests-5-${release}`, async (scratch) => {
    const dependencies = await capture('apt-cache', ['depends', KERNEL]);
    const kernel = /Depends: (linux-image-\S+)/.exec(dependencies)?.[1] ?? '';
    const wanted = [...PACKAGES, kernel];
    await unpackPackages([...new Set([...wanted, ...(await missingLibraries(PACKAGES))])], scratch);
  });
  const [kernel = ''] = (await readdir(join(root, 'boot'))).filter((name) => name.startsWith('vmlinuz-'));
  const initrd = await ensureInitrd(root);
  progress(
    `guests: QEMU with emulated processors, and Linux ${kernel.replace('vmlinuz-', '')} of ${await releaseOf()}`,
  );
  return { launcher, root, kernel: join(root, 'boot', kernel), initrd };
}

async function ensureInitrd(root: string): Promise<string> {
  const hash = createHash('sha256')
    .update(root)
    .update(JSON.stringify([MODULES, PROGRAMS]));
  for (const script of Object.values(SCRIPTS)) hash.update(await readFile(join(import.meta.dirname, script)));
  const folder = await cachedFolder(`initrd-${hash.digest('hex').slice(0, 16)}`, async (scratch) => {
    const tree = join(scratch, 'tree');
    const add = async (source: string, target: string) => {
      await mkdir(dirname(join(tree, target)), { recursive: true });
      await copyFile(source, join(tree, target));
    };
    const programs = Object.entries(PROGRAMS).map(([target, path]) => ({ source: join(root, path), target }));
    for (const { source, target } of withLibraries(programs, root)) await add(source, target);
    await add(join(root, 'bin/busybox'), 'bin/busybox');
    const modules = (await capture('find', [join(root, 'lib/modules'), '-name', '*.ko'])).split('\n');
    for (const name of MODULES)
      await add(modules.find((path) => path.endsWith(`/${name}.ko`)) ?? name, `lib/modules/${name}.ko`);
    await writeFile(join(tree, 'lib/modules/order'), MODULES.map((name) => `${name}\n`).join(''));
    for (const [target, script] of Object.entries(SCRIPTS)) await add(join(import.meta.dirname, script), target);
    await capture('sh', [
      '-euc',
      'cd "$1"; find . | "$2" cpio -o -H newc > ../initrd',
      'sh',
      tree,
      join(root, 'bin/busybox'),
    ]);
  });
  return join(folder, 'initrd');
}
