import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { cachedFolder, cacheFolder, moveTo, withScratch } from './cache.js';
import { BUILD_FLAGS, type BuildTarget, goBuild, goInstall, type Progress } from './go-build.js';
import { capture } from '../processes/processes.js';
import { kubernetesVersion, kubeVirtVersion, type Version } from './versions.js';

export type { Progress } from './go-build.js';

/** A program, with the arguments that come before its flags. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

/** What a control plane consists of. */
export interface Servers {
  readonly etcd: Program;
  readonly apiServer: Program;
}

/** The programs of the bed that do not belong to pod networks. */
export interface Binaries extends Servers {
  readonly controllerManager: Program;
  readonly scheduler: Program;
  readonly virtApi: string;
  /** `virt-controller`, and `virt-controller manifests`. */
  readonly virtController: string;
}

/** Commands of a Go module that are built and cached together. */
interface Target extends Omit<BuildTarget, 'folder'> {
  /** Names its folder in the cache. */
  readonly name: string;
}

const SOURCE = join(import.meta.dirname, '..', 'go');
const MULTUS = 'gopkg.in/k8snetworkplumbingwg/multus-cni.v4';
const OLDEST_GO = [1, 24] as const;

const NETWORK: Target = {
  name: 'network',
  title: 'Multus and the CNI plugins',
  packages: ['./netbed', './hotplug', 'tool'],
};

/** Multus itself belongs to NETWORK. */
const IMAGE_PROGRAMS: Target = {
  name: 'image-programs',
  title: 'the programs of images',
  packages: [
    './pause',
    ...['install_multus', 'passthru-cni', 'thin_entrypoint'].map((name) => `${MULTUS}/cmd/${name}`),
  ],
};

const MULTUS_DAEMON: Target = {
  name: 'multus-daemon',
  title: 'the daemon of Multus',
  packages: ['multus-daemon', 'multus-shim'].map((name) => `${MULTUS}/cmd/${name}`),
};

const serversTarget = () => targetOf('servers', 'etcd and kube-apiserver', kubernetesVersion(), ['./apiserver']);
const controllersTarget = () => targetOf('controllers', 'the controllers', kubernetesVersion(), ['./controllers']);
const kubectlTarget = () => targetOf('kubectl', 'kubectl', kubernetesVersion(), ['k8s.io/kubernetes/cmd/kubectl']);
const kubeletTarget = () => targetOf('kubelet', 'kubelet', kubernetesVersion(), ['k8s.io/kubernetes/cmd/kubelet']);
const kubeVirtTarget = () => targetOf('kubevirt', 'KubeVirt', kubeVirtVersion(), ['./virt-api', './virt-controller']);

const launcherTarget = () =>
  targetOf('virt-launcher', 'the launcher of guests', kubeVirtVersion(), ['./virt-launcher']);

function targetOf(name: string, title: string, { version, modfile, tags }: Version, packages: string[]): Target {
  return {
    name: `${name}-${version}`,
    title: `${title} ${version}`,
    packages,
    ...(modfile && { modfile }),
    ...(tags && { tags }),
  };
}

/**
 * The bed's binaries. Those that the cache lacks are built with Go, which takes minutes the first time.
 * @param withNetwork builds those of {@link ensureNetworkBinaries} too, so that their time is part of what is announced
 * @throws {Error} without a recent Go, or with the messages of the compiler
 */
export async function ensureBinaries(progress: Progress, withNetwork: boolean): Promise<Binaries> {
  const bed = [serversTarget(), controllersTarget(), kubeVirtTarget(), kubectlTarget()];
  const targets = [...bed, ...(withNetwork ? [NETWORK] : [])];
  const [servers = '', folder = '', kubeVirt = ''] = await ensureTargets(SOURCE, targets, progress);
  const controllers = join(folder, 'controllers');
  return {
    ...builtServers(servers),
    controllerManager: { command: controllers, args: ['kube-controller-manager'] },
    scheduler: { command: controllers, args: ['kube-scheduler'] },
    virtApi: join(kubeVirt, 'virt-api'),
    virtController: join(kubeVirt, 'virt-controller'),
  };
}

/** kubectl of the version of Kubernetes on the bed. @returns the path of the executable */
export async function ensureKubectl(progress: Progress): Promise<string> {
  const [folder = ''] = await ensureTargets(SOURCE, [kubectlTarget()], progress);
  return join(folder, 'kubectl');
}

/** kubelet of the version of Kubernetes on the bed. @returns the path of the executable */
export async function ensureKubelet(progress: Progress): Promise<string> {
  const [folder = ''] = await ensureTargets(SOURCE, [kubeletTarget()], progress);
  return join(folder, 'kubelet');
}

/** What stands for virt-launcher and virt-handler where guests run. @returns the path of the executable */
export async function ensureLauncher(progress: Progress): Promise<string> {
  const [folder = ''] = await ensureTargets(SOURCE, [launcherTarget()], progress);
  return join(folder, 'virt-launcher');
}

/** Only etcd and kube-apiserver, for tests that need no KubeVirt. */
export async function ensureServers(progress: Progress): Promise<Servers> {
  const [folder = ''] = await ensureTargets(SOURCE, [serversTarget()], progress);
  return builtServers(folder);
}

function builtServers(folder: string): Servers {
  const command = join(folder, 'apiserver');
  return { etcd: { command, args: ['etcd'] }, apiServer: { command, args: ['kube-apiserver'] } };
}

/** The folder of Multus, the CNI plugins, and the programs that hold the network namespaces (`netbed`, `hotplug`). */
export async function ensureNetworkBinaries(progress: Progress): Promise<string> {
  const [folder = ''] = await ensureTargets(SOURCE, [NETWORK], progress);
  return folder;
}

/** The folder of `pause`, and of the programs that install Multus on a node. */
export async function ensureImagePrograms(progress: Progress): Promise<string> {
  const [folder = ''] = await ensureTargets(SOURCE, [IMAGE_PROGRAMS], progress);
  return folder;
}

/** The folder of `multus-daemon` and `multus-shim`, the thick variant of Multus. */
export async function ensureMultusDaemon(progress: Progress): Promise<string> {
  const [folder = ''] = await ensureTargets(SOURCE, [MULTUS_DAEMON], progress);
  return folder;
}

/** The sources of Multus, in the version of {@link ensureNetworkBinaries}. @returns the folder of its Go module */
export async function downloadMultus(): Promise<string> {
  const { Dir } = JSON.parse(await capture('go', ['mod', 'download', '-json', MULTUS], { cwd: SOURCE })) as {
    Dir: string;
  };
  return Dir;
}

/**
 * @param source folder of a Go module
 * @returns the folder that holds all commands of the module
 */
export async function ensureModule(source: string, progress: Progress): Promise<string> {
  const name = basename(source);
  const [folder = ''] = await ensureTargets(source, [{ name, title: name, packages: ['./...'] }], progress);
  return folder;
}

/**
 * A command of a Go module that is not part of ours.
 * @param command its package and version: `example.com/tool/cmd/tool@v1.2.3`
 * @returns the path of the executable
 */
export async function ensureCommand(command: string, progress: Progress, tags = ''): Promise<string> {
  const flags = `${BUILD_FLAGS}${tags && ` -tags=${tags}`}`;
  const go = await findGo(tmpdir());
  const hash = createHash('sha256').update(`${go} ${process.platform} ${process.arch} ${flags}\n`);
  const name = commandName(command);
  const key = hash.update(command).digest('hex').slice(0, 16);
  const folder = await cachedFolder(`${name}-${key}`, (scratch) => goInstall(command, scratch, progress, tags));
  return join(folder, name);
}

/** The name that `go install` gives a command: the last part of its path that is not the major version of a module. */
function commandName(command: string): string {
  const [path = ''] = command.split('@');
  return path.replace(/\/v\d+$/, '').replace(/.*\//, '');
}

/** @returns the folder of each target, which is there only as a whole */
async function ensureTargets(source: string, targets: readonly Target[], progress: Progress): Promise<string[]> {
  const goVersion = await findGo(source);
  const folders = await Promise.all(
    targets.map(async (target) => join(cacheFolder(), `${target.name}-${await keyOf(source, target, goVersion)}`)),
  );
  const missing = targets.flatMap((target, index) => {
    const folder = folders[index] ?? '';
    return existsSync(folder) ? [] : [{ ...target, folder }];
  });
  if (missing.length > 0) await build(source, missing, progress);
  return folders;
}

/** @param folder Go takes the toolchain that a module there asks for */
async function findGo(folder: string): Promise<string> {
  const wanted = `Go ${OLDEST_GO.join('.')} or newer builds the test bed (https://go.dev/dl)`;
  let version: string;
  try {
    version = (await capture('go', ['env', 'GOVERSION'], { cwd: folder })).trim();
  } catch (error) {
    throw new Error(`${wanted}; "go" did not run`, { cause: error });
  }
  const [, major = '0', minor = '0'] = /^go(\d+)\.(\d+)/.exec(version) ?? [];
  const isRecent = Number(major) > OLDEST_GO[0] || (Number(major) === OLDEST_GO[0] && Number(minor) >= OLDEST_GO[1]);
  if (!isRecent) throw new Error(`${wanted}; this is ${version}`);
  return version;
}

/** A hash of everything that decides what the binaries of a target are. */
async function keyOf(
  source: string,
  { packages, modfile = 'go.mod', tags = '' }: Target,
  goVersion: string,
): Promise<string> {
  const flags = `${BUILD_FLAGS}${tags && ` -tags=${tags}`}`;
  const hash = createHash('sha256').update(`${goVersion} ${process.platform} ${process.arch} ${flags}\n`);
  const moduleFiles = [modfile, modfile.replace(/mod$/, 'sum')];
  const folders = packages.flatMap((path) => /^\.\/(?:\.\.\.)?(.*)/.exec(path)?.[1] ?? []);
  const isPart = (file: string) => file.endsWith('.go') && folders.some((folder) => file.startsWith(folder));
  const files = (await readdir(source, { recursive: true })).filter(
    (file) => moduleFiles.includes(file) || isPart(file),
  );
  for (const file of files.sort()) hash.update(`${file}\n`).update(await readFile(join(source, file)));
  return hash.digest('hex').slice(0, 16);
}

async function build(source: string, targets: readonly BuildTarget[], progress: Progress): Promise<void> {
  await withScratch(async (scratch) => {
    const unfinished = targets.map((target, index) => ({ ...target, folder: join(scratch, String(index)) }));
    await goBuild(source, unfinished, progress);
    for (const [index, { folder }] of targets.entries()) await moveTo(folder, unfinished[index]?.folder ?? '');
  });
}
