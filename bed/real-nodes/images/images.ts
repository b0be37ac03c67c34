import { readFile, readdir, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { assemble } from '../../../test/image/build.js';
import { findProgram, type Mount, withLibraries } from '../../../test/image/container.js';
import { readFinalStage } from '../../../test/image/final-stage.js';
import { nodeOfImage } from '../../../test/image/node.js';
import { ROOT } from '../../../test/source-files.js';
import {
  downloadMultus,
  ensureImagePrograms,
  ensureMultusDaemon,
  ensureNetworkBinaries,
  type Progress,
} from '../../build/binaries.js';
import { type Manifest, readManifests } from '../../control-plane/objects.js';
import type { GuestPrograms } from './guest-programs.js';
import type { Image, ImageFile } from './oci-image.js';

/** The image of pod sandboxes, for the settings of containerd. */
export const PAUSE_IMAGE = 'docker.io/local/pause:1';
/** Of ordinary pods in stories. Simulated nodes start no container, and accept each name. */
export const ORDINARY_IMAGE = 'registry.test/pod:1';
/** Multus' own files for its DaemonSets, which are applied without a change, and the names that they give to the images. */
const MULTUS = {
  thin: { manifest: 'multus-daemonset.yml', name: 'ghcr.io/k8snetworkplumbingwg/multus-cni:snapshot' },
  thick: { manifest: 'multus-daemonset-thick.yml', name: 'ghcr.io/k8snetworkplumbingwg/multus-cni:snapshot-thick' },
} as const;
/** Where its programs expect each other. */
const MULTUS_BIN = '/usr/src/multus-cni/bin';

/** Thick: the runtime starts a shim for each request, which asks the pod of the DaemonSet. Thin: it starts Multus itself. */
export const isMultusThick = process.env.MULTUS === 'thick';
const { manifest: MULTUS_MANIFEST, name: MULTUS_IMAGE } = MULTUS[isMultusThick ? 'thick' : 'thin'];

/** What tutorials call in a pod. */
const BUSYBOX_COMMANDS = ['busybox', 'sh', 'sleep', 'ping', 'ip'];

/** Programs that launcher pods start (virt-controller v1.8.0, pkg/virt-controller/services/template.go). */
const LAUNCHER_PROGRAMS = ['virt-launcher-monitor', 'virt-tail', 'container-disk'];
/** bash is sh, too, as in KubeVirt's image: it replaces itself by a single command, which then gets the signals. */
const SHELL_AND_CP = { '/bin/bash': 'bash', '/bin/sh': 'bash', '/usr/bin/cp': 'cp' };

/** What QEMU loads besides libraries, by its path in packages and in the image. */
const QEMU_FILES = [
  ...['usr/share/seabios/bios-256k.bin', 'usr/share/qemu/kvmvapic.bin', 'usr/share/qemu/linuxboot_dma.bin'],
  'usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so',
];

/** What distroless has besides Node.js and its libraries. */
const DISTROLESS: readonly ImageFile[] = [
  {
    target: '/etc/passwd',
    text: [
      'root:x:0:0:root:/root:/sbin/nologin',
      'nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin',
      'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin',
      '',
    ].join('\n'),
  },
  { target: '/etc/group', text: 'root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n' },
  { target: '/etc/nsswitch.conf', text: 'hosts: files dns\n' },
  { target: '/tmp', mode: 0o1777 },
];

interface HoldfastImageOptions {
  /** By default as the manifests of the tree call it. */
  readonly name?: string;
  /** With `dist/`; by default this repository. */
  readonly tree?: string;
  /** The program; by default of the version that the Dockerfile names. */
  readonly node?: string;
}

/**
 * The image of the Dockerfile on this machine's Node.js and libraries instead of its base image.
 * @param folder is created, and must be kept until the image is written
 */
export async function holdfastImage(folder: string, options: HoldfastImageOptions = {}): Promise<Image> {
  const { tree = ROOT, name = `docker.io/library/holdfast:${await versionOf(tree)}` } = options;
  const { stage, config } = await readFinalStage(tree);
  const root = await assemble(stage, { from: '/src', source: tree }, folder);
  await keepArchitecture(join(root, config.WorkingDir, 'dist'));
  const [target = ''] = config.Entrypoint;
  const base = withLibraries([{ source: options.node ?? (await nodeOfImage()), target }]);
  return { name, config, files: [...DISTROLESS, ...base, { source: root, target: '/' }] };
}

async function versionOf(tree: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(tree, 'package.json'), 'utf8')) as { version: string };
  return version;
}

/** Makes a build for all architectures what the Dockerfile's command makes for one. */
async function keepArchitecture(dist: string): Promise<void> {
  const suffix = `-linux-${process.arch === 'x64' ? 'amd64' : process.arch}`;
  for (const folder of ['cni', 'packets']) {
    const others = (await readdir(join(dist, folder))).filter((file) => !file.endsWith(suffix));
    for (const file of others) await rm(join(dist, folder, file));
  }
  const program = join(dist, 'packets', 'holdfast-packets');
  await rename(`${program}${suffix}`, program);
  await symlink(`holdfast${suffix}`, join(dist, 'cni', 'holdfast'));
}

/** The image of ordinary pods of the stories, which only wait. */
export async function ordinaryImage(progress: Progress): Promise<Image> {
  return { ...(await pauseImage(progress)), name: ORDINARY_IMAGE };
}

/** busybox under the name that a tutorial uses. @param program a static one */
export function busyboxImage(name: string, program: string): Image {
  const links = BUSYBOX_COMMANDS.map((command) => ({ source: program, target: `/bin/${command}` }));
  return { name, config: { Cmd: ['sh'] }, files: links };
}

/** The image of pod sandboxes. */
export async function pauseImage(progress: Progress): Promise<Image> {
  const source = join(await ensureImagePrograms(progress), 'pause');
  return { name: PAUSE_IMAGE, config: { Entrypoint: ['/pause'] }, files: [{ source, target: '/pause' }] };
}

/**
 * Stands for KubeVirt's launcher image: its programs run in the pods of virt-controller, but start no guest. They wait until
 * they are told to end.
 */
export async function launcherImage(name: string, progress: Progress): Promise<Image> {
  return { name, config: {}, files: [...withLibraries(shellAndCp()), ...(await waitingPrograms(progress))] };
}

async function waitingPrograms(progress: Progress): Promise<Mount[]> {
  const source = join(await ensureImagePrograms(progress), 'pause');
  return LAUNCHER_PROGRAMS.map((program) => ({ source, target: `/usr/bin/${program}` }));
}

/** KubeVirt's launcher image with all that QEMU needs, and a kernel for all guests instead of disks. */
export async function guestLauncherImage(
  name: string,
  { launcher, root, kernel, initrd }: GuestPrograms,
  progress: Progress,
): Promise<Image> {
  const [monitor, ...others] = await waitingPrograms(progress);
  const of = (path: string) => ({ source: join(root, path), target: `/${path}` });
  const files = [
    ...others,
    { source: launcher, target: monitor?.target ?? '' },
    { source: kernel, target: '/guest/vmlinuz' },
    { source: initrd, target: '/guest/initrd' },
    ...QEMU_FILES.map(of),
    ...withLibraries([...shellAndCp(), of('usr/bin/qemu-system-x86_64'), of('usr/bin/xorrisofs')], root),
  ];
  return { name, config: {}, files };
}

/** Stands for an image with the disk of a guest. Launcher pods bring the only program that runs in it. */
export function containerDiskImage(name: string): Image {
  return { name, config: {}, files: [{ target: '/disk/disk.img', text: '' }] };
}

function shellAndCp(): Mount[] {
  return Object.entries(SHELL_AND_CP).map(([target, name]) => ({ source: findProgram(name), target }));
}

/** The image that a DaemonSet of Multus runs: images/Dockerfile or images/Dockerfile.thick, with the programs that it starts. */
export async function multusImage(progress: Progress): Promise<Image> {
  const programs = await ensureImagePrograms(progress);
  const passthru = { source: join(programs, 'passthru-cni'), target: `${MULTUS_BIN}/passthru` };
  const others = await (isMultusThick ? thickMultus(progress) : thinMultus(programs, progress));
  return { name: MULTUS_IMAGE, config: { WorkingDir: '/' }, files: [passthru, ...others] };
}

async function thinMultus(programs: string, progress: Progress): Promise<ImageFile[]> {
  return [
    ...['install_multus', 'thin_entrypoint'].map((name) => ({ source: join(programs, name), target: `/${name}` })),
    { source: join(await ensureNetworkBinaries(progress), 'multus'), target: `${MULTUS_BIN}/multus` },
  ];
}

async function thickMultus(progress: Progress): Promise<ImageFile[]> {
  const folder = await ensureMultusDaemon(progress);
  const names = ['multus-daemon', 'multus-shim'];
  // the daemon looks up its user
  return [
    ...DISTROLESS,
    ...withLibraries(shellAndCp()),
    ...names.map((name) => ({ source: join(folder, name), target: `${MULTUS_BIN}/${name}` })),
  ];
}

/** The objects of Multus' own file for a DaemonSet: its CRD, RBAC, settings and the DaemonSet. */
export async function multusObjects(): Promise<Manifest[]> {
  return readManifests(join(await downloadMultus(), 'deployments', MULTUS_MANIFEST));
}
