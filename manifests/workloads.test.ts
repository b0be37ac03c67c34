import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { MANIFESTS } from '../bed/holdfast/manifests.js';
import { readCommandLine } from '../process/command-line.js';
import { GO_TOOL_TIMEOUT_MS } from '../test/go-tools.js';
import { type Container, DEPLOYED, Installation } from './testing/installation.js';
import { helmTemplate, kustomizeBase } from './testing/render.js';

type Pod = Partial<Record<'containers' | 'initContainers', readonly Container[]>>;

describe('the workloads of the manifests', function () {
  this.timeout(GO_TOOL_TIMEOUT_MS);
  let separate: Installation;
  let allInOne: Installation;

  before(async () => {
    separate = await Installation.read();
    allInOne = Installation.of(await kustomizeBase(['all-in-one', 'without-capacity']));
  });

  for (const process of [...DEPLOYED, 'all'] as const) {
    describe(`of the ${process} process`, () => {
      let shipped: Installation;
      before(() => {
        shipped = process === 'all' ? allInOne : separate;
      });
      const name = `holdfast-${process}`;

      it('select the pods that they create', () => {
        const { labels } = shipped.template(name).metadata;
        const { selector } = shipped.find('Deployment', name).spec;
        expect(selector).to.deep.equal({ matchLabels: labels });
      });

      it('harden the pod', () => {
        const { spec } = shipped.template(name);
        expect(spec.securityContext).to.deep.equal({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
        for (const container of spec.containers) {
          expect(container.securityContext).to.deep.equal({
            runAsGroup: 1000,
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          });
        }
      });

      it('start it with valid flags', () => {
        for (const { args } of shipped.template(name).spec.containers)
          expect(readCommandLine(args, {})?.process).to.equal(process);
      });

      it('probe the ports that it opens', () => {
        for (const { ports, livenessProbe, readinessProbe } of shipped.template(name).spec.containers) {
          const names = ports.map((port) => port.name);
          expect(names).to.include(livenessProbe.httpGet.port).and.to.include(readinessProbe.httpGet.port);
        }
      });

      it('do not restart it because it starts or answers slowly on a busy node', () => {
        for (const { livenessProbe, readinessProbe } of shipped.template(name).spec.containers) {
          expect(livenessProbe).to.include({ initialDelaySeconds: 30, timeoutSeconds: 10 });
          expect(readinessProbe.timeoutSeconds).to.equal(5);
        }
      });

      it('put the replicas of one version on different nodes', () => {
        const { metadata, spec } = shipped.template(name);
        expect(spec.topologySpreadConstraints).to.deep.equal([
          {
            maxSkew: 1,
            topologyKey: 'kubernetes.io/hostname',
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: { matchLabels: metadata.labels },
            matchLabelKeys: ['pod-template-hash'],
          },
        ]);
      });

      it('run on Linux nodes, of the control plane too, and leave a lost node after 30 s', () => {
        const { nodeSelector, tolerations } = shipped.template(name).spec;
        expect(nodeSelector).to.deep.equal({ 'kubernetes.io/os': 'linux' });
        const kept = tolerations.map(({ key, effect, tolerationSeconds }) => [key, effect, tolerationSeconds]);
        expect(kept).to.deep.equal([
          ['node-role.kubernetes.io/control-plane', 'NoSchedule', undefined],
          ['node.kubernetes.io/not-ready', 'NoExecute', 30],
          ['node.kubernetes.io/unreachable', 'NoExecute', 30],
        ]);
        expect(tolerations.map(({ operator }) => operator)).to.deep.equal(['Exists', 'Exists', 'Exists']);
      });

      it('let a drain evict one replica at a time, the only replica and those that are not ready', () => {
        const { labels } = shipped.template(name).metadata;
        expect(shipped.find('PodDisruptionBudget', name).spec).to.deep.equal({
          maxUnavailable: 1,
          unhealthyPodEvictionPolicy: 'AlwaysAllow',
          selector: { matchLabels: labels },
        });
      });
    });
  }

  it('are not evicted in favour of tenants, and each container requests CPU and memory and limits memory only', () => {
    for (const { kind, metadata, spec } of [separate, allInOne].flatMap((each) => each.workloads())) {
      const { priorityClassName, containers } = spec.template.spec;
      expect(priorityClassName, metadata.name).to.equal(
        kind === 'DaemonSet' ? 'system-node-critical' : 'system-cluster-critical',
      );
      for (const { resources } of containers) {
        expect(resources.requests, metadata.name).to.have.all.keys('cpu', 'memory');
        expect(resources.limits, metadata.name).to.have.all.keys('memory');
      }
    }
  });

  it('let the chart limit the CPU of all containers, as a ResourceQuota may require', async () => {
    const names = ['controller', 'webhook', 'ipam', 'capacity', 'guest', 'agent'];
    const values = names.map((name) => [name, { resources: { limits: { cpu: '1' } } }] as const);
    for (const { metadata, spec } of await helmTemplate(Object.fromEntries(values))) {
      const { template, ...own } = (spec ?? {}) as Pod & { template?: { spec: Pod } };
      const { containers = [], initContainers = [] } = template?.spec ?? own;
      for (const { resources } of [...containers, ...initContainers])
        expect(resources.limits, metadata.name).to.have.all.keys('cpu', 'memory');
    }
  });

  it('limit the heap of ipam below its memory limit', () => {
    for (const [container] of [separate.template('holdfast-ipam'), allInOne.template('holdfast-all')].map(
      ({ spec }) => spec.containers,
    )) {
      const options = container?.env.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '';
      const heapMiB = Number(/^--max-old-space-size=(\d+)$/.exec(options)?.[1]);
      const [, limitGi] = /^(\d+)Gi$/.exec(container?.resources.limits.memory ?? '') ?? [];
      expect(heapMiB).to.equal(Number(limitGi) * 1024 * 0.75);
    }
  });

  it('keep the certificate of ipam with the patch for an audit log in docs/how-to/audit.md', async () => {
    const page = await readFile(join(MANIFESTS, '../docs/how-to/audit.md'), 'utf8');
    const [, text = ''] = /```yaml\n(patches:\n[^`]*)```/.exec(page) ?? [];
    const { patches } = parse(text) as { patches: object[] };
    const [plain, patched] = await Promise.all([[], patches].map((each) => kustomizeBase(['cert-manager'], each)));
    const before = Installation.of(plain!).template('holdfast-ipam').spec;
    const after = Installation.of(patched!).template('holdfast-ipam').spec;
    expect(after.volumes).to.have.deep.members([...before.volumes, { name: 'audit', emptyDir: { sizeLimit: '1Gi' } }]);
    const [{ volumeMounts: mounts = [], env }] = before.containers as [Container];
    expect(after.containers[0]?.volumeMounts).to.have.deep.members([...mounts, { name: 'audit', mountPath: '/audit' }]);
    const variable = { name: 'HOLDFAST_AUDIT_LOG', value: '/audit/audit.log' };
    expect(after.containers[0]?.env).to.have.deep.members([...env, variable]);
    expect(mounts.map(({ name }) => name)).to.include('ipam-certificate');
  });
});
