import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ROOT } from '../../test/source-files.js';
import { MANIFESTS } from '../holdfast/manifests.js';

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

  async function calls(): Promise<string[]> {
    return (await readFile(join(folder, 'calls'), 'utf8')).trim().split('\n');
  }

  it('waits for the kinds and for all five workloads', async () => {
    const { status, stderr, stdout } = run();
    expect(status, stderr).to.equal(0);
    const text = (await calls()).join('\n');
    expect(text).to.match(/wait .*crd\/ipamclaims\S+ crd\/addresspools\S+ crd\/addressleases\S+ crd\/addressblocks\S+\n/);
    for (const name of ['controller', 'webhook', 'ipam', 'capacity']) {
      expect(text).to.include(`-n holdfast-system rollout status deployment/holdfast-${name}`);
    }
    expect(text).to.include('-n holdfast-agents rollout status daemonset/holdfast-agent');
    expect(text).to.include('-n kube-system rollout status daemonset/kube-multus-ds');
    expect(text).not.to.include('rollout restart');
    expect(stdout).to.include('The cluster is ready');
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
