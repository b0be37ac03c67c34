import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { ROOT, findFiles } from '../../test/source-files.js';
import { kubeVirtVersion, PAIRS } from '../build/versions.js';
import { MANIFESTS } from '../holdfast/manifests.js';

interface KubeVirtObject {
  spec: {
    configuration: { developerConfiguration: { featureGates: string[] } };
    workloadUpdateStrategy: { workloadUpdateMethods: string[] };
  };
}

/** Stands in for all commands of the script: writes down its call, and answers what the script reads. */
const COMMAND = `#!/usr/bin/env bash
call="\${0##*/} $*"
echo "$call" >>"$CALLS"
case $call in
  $FAILING) exit 1 ;;
  'kind get clusters') cat "$CLUSTERS" ;;
  'kind create cluster'*) echo holdfast >>"$CLUSTERS" ;;
  'kind get nodes'*) printf '%s\\n' control-plane worker-1 worker-2 ;;
  *'get nodes --no-headers'*) printf 'worker-%s\\n' $WORKERS ;;
  *'get daemonset holdfast-agent'*) echo "$AGENT" ;;
  *dpkg*) echo amd64 ;;
  curl*.sha256) file=\${@: -2:1}; (cd "\${file%/*}" && sha256sum "$(basename "$file" .sha256)" >"$file") ;;
  curl*) echo content >"\${@: -2:1}" ;;
esac
`;
const COMMANDS = ['curl', 'docker', 'kind', 'kubectl', 'make'];

describe('bed/kind/up.sh, with commands that only record their calls', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-'));
    await writeFile(join(folder, 'clusters'), '');
    await writeFile(join(folder, 'calls'), '');
    const command = join(folder, 'command');
    await writeFile(command, COMMAND);
    await chmod(command, 0o755);
    for (const name of COMMANDS) await symlink(command, join(folder, name));
  });
  afterEach(() => rm(folder, { recursive: true }));

  function run(environment: Record<string, string> = {}): SpawnSyncReturns<string> {
    const [CALLS, CLUSTERS] = [join(folder, 'calls'), join(folder, 'clusters')];
    const answers = { CALLS, CLUSTERS, WORKERS: '1 2', AGENT: '', FAILING: 'nothing' };
    const PATH = `${folder}:${process.env.PATH ?? ''}`;
    const env = { ...process.env, ...answers, CLUSTER: 'holdfast', ...environment, PATH };
    return spawnSync(join(import.meta.dirname, 'up.sh'), { env, encoding: 'utf8' });
  }

  /** The names of the Deployments in manifests/base. */
  async function deployments(): Promise<string[]> {
    const paths = (await findFiles('deployment.yaml')).filter((path) => path.startsWith('manifests/base/'));
    const texts = await Promise.all(paths.map((path) => readFile(join(ROOT, path), 'utf8')));
    const names = texts.flatMap((text) => /^kind: Deployment\nmetadata:\n {2}name: (\S+)/m.exec(text)?.[1] ?? []);
    expect(names).to.include('holdfast-guest');
    return names;
  }

  async function calls(): Promise<string[]> {
    return (await readFile(join(folder, 'calls'), 'utf8')).trim().split('\n');
  }

  it('waits for the kinds and for all workloads of Holdfast, Multus and the dynamic networks controller', async () => {
    const { status, stderr, stdout } = run();
    expect(status, stderr).to.equal(0);
    const text = (await calls()).join('\n');
    expect(text).to.match(/wait .*crd\/ipamclaims\S+ crd\/addresspools\S+ crd\/addressleases\S+ crd\/addressblocks\S+\n/);
    for (const name of await deployments())
      expect(text).to.include(`-n holdfast-system rollout status deployment/${name}`);
    expect(text).to.include('-n holdfast-agents rollout status daemonset/holdfast-agent');
    expect(text).to.include('-n kube-system rollout status daemonset/kube-multus-ds');
    expect(text).to.include('-n kube-system rollout status daemonset/dynamic-networks-controller-ds');
    expect(text).not.to.include('rollout restart');
    expect(stdout).to.include('The cluster is ready');
  });

  it('creates the KubeVirt object of the test bed, with the gates that the bed opens in this version', async () => {
    const { spec } = parse(await readFile(join(ROOT, 'bed/manifests/kubevirt.yaml'), 'utf8')) as KubeVirtObject;
    expect(spec.workloadUpdateStrategy.workloadUpdateMethods).to.include('LiveMigrate');
    for (const minor of new Set(PAIRS.map(({ kubeVirt }) => kubeVirt))) {
      await writeFile(join(folder, 'calls'), '');
      const { version, featureGates = [] } = kubeVirtVersion(minor);
      run({ KUBEVIRT_VERSION: version });
      const made = await calls();
      expect(made.some((call) => call.endsWith(' -f bed/manifests/kubevirt.yaml'))).to.equal(true);
      const [, patch = ''] = /patch kubevirt kubevirt --type=merge -p (.*)$/.exec(made.find((call) => call.includes('patch kubevirt'))!) ?? [];
      const developerConfiguration = {
        useEmulation: true,
        featureGates: [...spec.configuration.developerConfiguration.featureGates, ...featureGates],
      };
      expect(JSON.parse(patch)).to.deep.equal({ spec: { configuration: { developerConfiguration } } });
    }
  });

  it('builds and loads the image that the manifests name, whatever the environment has for `make image`', async () => {
    const environment = { IMAGE: 'registry.example.com/other', VERSION: '9.9.9', OUTPUT: 'type=registry', PLATFORMS: 'a/b' };
    run(environment);
    const [, image] = /image: (\S+)/.exec(await readFile(join(MANIFESTS, 'base/claims/webhook/deployment.yaml'), 'utf8'))!;
    const made = await calls();
    expect(made).to.include(`docker image inspect ${image!}`);
    expect(made).to.include(`kind load docker-image ${image!} --name holdfast`);
    const [, ...args] = made.find((call) => call.startsWith('make '))!.split(' ');
    const env = { ...process.env, ...environment };
    const { stdout, stderr } = spawnSync('make', ['--dry-run', ...args], { cwd: ROOT, env, encoding: 'utf8' });
    expect(stdout, stderr).to.include(`--output 'type=docker' --tag '${image!}'`);
    expect(stdout).not.to.include('--platform');
  });

  it('uses the context of its own cluster, and no other one', async () => {
    run();
    for (const call of await calls()) {
      if (call.startsWith('kubectl')) expect(call).to.match(/^kubectl --context kind-holdfast /);
    }
  });

  it('keeps a cluster that is there, and restarts the workloads with the new image', async () => {
    await writeFile(join(folder, 'clusters'), 'holdfast\n');
    const { status, stderr } = run({ AGENT: 'daemonset.apps/holdfast-agent' });
    expect(status, stderr).to.equal(0);
    const text = (await calls()).join('\n');
    expect(text).not.to.include('kind create cluster');
    expect(text.match(/rollout restart/g)).to.have.length(2);
  });

  it('names the step that failed, and what to do', () => {
    const { status, stderr } = run({ FAILING: '*rollout status deployment/virt-operator*' });
    expect(status).to.equal(1);
    expect(stderr)
      .to.include('failed in the step: KubeVirt v')
      .and.to.include('down.sh');
  });

  it('refuses a cluster with too few workers, and a machine without a container engine', () => {
    expect(run({ WORKERS: '1' }).stderr).to.include('the cluster holdfast has 1 workers, and 2 are needed');
    const { status, stderr } = run({ FAILING: 'docker info' });
    expect(status).to.equal(1);
    expect(stderr).to.include('cannot reach docker');
  });
});
