import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { KEPT_POLICY } from '../cli/uninstall/plan.js';
import type { Manifest } from '../bed/control-plane/objects.js';
import { capture } from '../bed/processes/processes.js';
import { MANIFESTS } from '../bed/holdfast/manifests.js';
import { GO_TOOL_TIMEOUT_MS, goTool } from '../test/go-tools.js';
import { messageOf } from '../kube/errors.js';
import { GUEST_SETTINGS } from '../process/config/guest-config.js';
import { parseResponderTemplate } from '../process/config/responder-template.js';
import { variableOf } from '../process/config/setting.js';
import { CHART_README, chartReadme } from './testing/chart-readme.js';
import { comparable } from './testing/comparable.js';
import {
  CHART,
  REGISTRY_VALUE,
  VARIANTS,
  helmTemplate,
  keyOf,
  kustomizeBase,
  kustomizeBuild,
} from './testing/render.js';

/** In the order in which Helm writes keys. */
const RESPONDER = {
  nodeSelector: { 'r/node': 'b' },
  packetsResources: { requests: { cpu: '3' } },
  podAnnotations: { 'r/annotation': 'c' },
  podLabels: { 'r/label': 'd' },
  priorityClassName: 'r-class',
  resources: { limits: { 'r/device': 1 } },
  tolerations: [{ key: 'r-taint' }],
};

interface DeploymentManifest extends Manifest {
  spec?: { template: { spec: { containers: { env?: { name: string; value?: string }[] }[] } } };
}

describe('The Helm chart', function () {
  this.timeout(60_000);

  before(async function () {
    this.timeout(GO_TOOL_TIMEOUT_MS);
    await Promise.all([goTool('helm'), goTool('kustomize')]);
  });

  it('passes the strict lint of Helm', async () => {
    await capture(await goTool('helm'), ['lint', '--strict', CHART, REGISTRY_VALUE]);
  });

  for (const [name, { components, values }] of Object.entries(VARIANTS)) {
    it(`renders the objects that kustomize renders: ${name}`, async () => {
      const [fromKustomize, fromHelm] = await Promise.all([kustomizeBase(components), helmTemplate(values)]);
      const wanted = fromKustomize.filter((object) => !isNamespaceOfRelease(object));
      const found = fromHelm.filter((object) => !isOnlyInChart(object));
      expect(found.map(keyOf)).to.have.members(wanted.map(keyOf));
      for (const object of wanted) {
        const same = found.find((other) => keyOf(other) === keyOf(object))!;
        expectHelmLabels(same);
        expect(comparable(same), keyOf(object)).to.deep.equal(comparable(object));
      }
    });
  }

  it('has a README that describes all values', async () => {
    expect(await readFile(CHART_README, 'utf8'), 'run `npm run reference`').to.equal(await chartReadme());
  });

  it('refuses values that it does not know, and values of a wrong type, by name', async () => {
    const refused: [object, string][] = [
      [{ contoller: { replicas: 3 } }, 'contoller'],
      [{ controller: { replica: 3 } }, 'replica'],
      [{ controller: { replicas: 'three' } }, 'replicas'],
      [{ agent: { cniBinDir: 'opt/cni/bin' } }, 'cniBinDir'],
      [{ image: { digest: 'latest' } }, 'digest'],
      [{ featureGates: { NodeBlock: true } }, 'NodeBlock'],
      // the gate alone would create claims to which no launcher refers
      [{ featureGates: { PrimaryUserDefinedNetwork: true } }, 'PrimaryUserDefinedNetwork'],
      [{ networkPolicy: { apiServerCIDRs: ['192.0.2.1'] } }, 'apiServerCIDRs'],
      [{ allInOne: { enabled: true }, ipam: { enabled: false } }, 'ipam.enabled'],
      [{ guardCounters: { enabled: true }, ipam: { enabled: false } }, 'guardCounters.enabled'],
      [{ certManager: { issuerRef: { name: 'ca' } } }, 'certManager.enabled'],
      [{ image: { registry: 'registry.example.com/' } }, 'registry'],
      [{ image: { registry: '' } }, 'image.registry is not set'],
      [{ image: { registry: '', repository: 'other' } }, 'image other'],
      [{ ipam: { extraEnv: [{ value: 'a' }] } }, 'extraEnv'],
      // a second value for a variable, another selector, and an object that is there already: the API server would refuse them
      [{ agent: { extraEnv: [{ name: 'NODE_NAME', value: 'a' }] } }, 'extraEnv'],
      [{ controller: { podLabels: { 'app.kubernetes.io/component': 'network' } } }, 'podLabels'],
      [{ agent: { namespace: 'holdfast-responders' } }, 'agent/namespace'],
      [{ agent: { updateStrategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } } }, 'maxSurge'],
      [{ agent: { updateStrategy: { rollingUpdate: { maxSurge: '10%' } } } }, 'maxSurge'],
      [{ agent: { topologySpreadConstraints: [{}] } }, 'topologySpreadConstraints'],
      [{ webhook: { replicas: 0 } }, 'replicas'],
      [{ guest: { responder: { affinity: {} } } }, 'affinity'],
      [{ guest: { responder: { resources: { claims: [] } } } }, 'claims'],
      // no pod of the chart has resourceClaims
      [{ controller: { resources: { claims: [{ name: 'a' }] } } }, 'claims'],
      [{ ipam: { auditLog: '/audit/audit.log' } }, 'ipam.auditVolume'],
      [{ ipam: { auditVolume: { emptyDir: {} } } }, 'ipam.auditLog'],
      [{ ipam: { auditLog: 'audit.log', auditVolume: { emptyDir: {} } } }, 'auditLog'],
      [{ ipam: { resources: { limits: { memory: '1.5Gi' } } } }, '1.5Gi'],
      [{ ipam: { resources: { limits: { memory: 1073741824 } } } }, 'Mi or Gi'],
    ];
    for (const [values, word] of refused) {
      const outcome = await helmTemplate(values).catch(messageOf);
      expect(outcome, JSON.stringify(values)).to.be.a('string').and.to.include(word);
    }
  });

  it('renders each object once, whatever the namespaces of the release and of the agents are called', async () => {
    for (const [namespace, agents] of [
      ['holdfast', 'holdfast'],
      ['holdfast-agents', 'agents'],
      ['agents', 'holdfast-system'],
    ] as const) {
      const objects = await helmTemplate(
        { agent: { namespace: agents }, prometheusOperator: { enabled: true } },
        namespace,
      );
      expect(new Set(objects.map(keyOf)).size, namespace).to.equal(objects.length);
      const kinds = new Map([
        ['Deployment', namespace],
        ['DaemonSet', agents],
      ]);
      for (const { kind, metadata } of objects) {
        if (kinds.has(kind)) expect(metadata.namespace, `${kind} ${metadata.name}`).to.equal(kinds.get(kind));
      }
    }
  });

  it('gives each value an effect', async () => {
    const process = {
      resources: { limits: { memory: '3Gi' } },
      nodeSelector: { 'a/node': 'b' },
      tolerations: [{ key: 'a-taint' }],
      affinity: { nodeAffinity: { a: 'b' } },
      priorityClassName: 'a-class',
      podAnnotations: { an: 'annotation' },
      podLabels: { a: 'label' },
      extraArgs: ['--a-flag'],
      extraEnv: [{ name: 'A_VARIABLE', value: 'a-value' }],
      serviceAccountAnnotations: { an: 'account' },
    };
    const ofDeployments = {
      updateStrategy: { type: 'Recreate' },
      topologySpreadConstraints: [{ topologyKey: 'a-zone' }],
    };
    const ofPods = ['memory: 3Gi', 'a/node: b', 'key: a-taint', 'nodeAffinity:', 'priorityClassName: a-class'];
    const ofProcess = [
      ...[...ofPods, 'an: annotation', 'a: label', '- --a-flag'],
      ...['name: A_VARIABLE\n', 'an: account'],
    ];
    const ofReplicas = [...ofProcess, 'replicas: 7', 'type: Recreate', 'topologyKey: a-zone'];
    const ofHeap = [...ofReplicas, '--max-old-space-size=2304'];
    const replicated = { ...process, ...ofDeployments, replicas: 7 };
    const image = {
      registry: 'registry.test:5000',
      repository: 'other',
      tag: 'v9',
      digest: `sha256:${'a'.repeat(64)}`,
    };
    const effects: [object, string[]][] = [
      [{ controller: replicated }, ofReplicas],
      [{ webhook: replicated }, ofReplicas],
      [{ ipam: replicated }, ofHeap],
      [{ capacity: replicated }, ofReplicas],
      [{ guest: replicated }, ofReplicas],
      [
        { guest: { responder: RESPONDER } },
        [JSON.stringify(RESPONDER), 'cpu\n', 'r/annotation\n', 'r/device\n', 'r/label\n'],
      ],
      [{ guest: { responder: RESPONDER }, allInOne: { enabled: true } }, [JSON.stringify(RESPONDER)]],
      [{ agent: { ...process, updateStrategy: { type: 'OnDelete' } } }, [...ofProcess, 'type: OnDelete']],
      [{ allInOne: { ...replicated, enabled: true } }, ofHeap],
      [
        { image: { ...image, pullPolicy: 'Always', pullSecrets: [{ name: 'a-secret' }] } },
        [
          `registry.test:5000/other:v9@${image.digest}`,
          'responderImages: registry.test:5000/other\n',
          'imagePullPolicy: Always',
          'name: a-secret',
        ],
      ],
      [
        { kubevirtNamespace: 'a-kubevirt', claimWriters: ['a-writer'], statusWriters: ['b-writer'] },
        ['kubevirtNamespace: a-kubevirt', 'claimWriters: a-writer', 'statusWriters: b-writer'],
      ],
      [
        { featureGates: { NodeBlocks: true }, logLevel: 'debug', agent: { namespace: 'a-namespace' } },
        ['--feature-gates=NodeBlocks=true', '--log-level=debug', 'namespace: a-namespace'],
      ],
      [
        { ipam: { globalNamespaces: ['a', 'b'], capacityNamespaces: ['a', 'c'] } },
        ['--global-namespaces=a,b', '--capacity-namespaces=a,c'],
      ],
      [{ ipam: { auditLog: '-' } }, ['--audit-log=-']],
      [
        {
          ipam: { auditLog: '/var/audit/audit.log', auditVolume: { persistentVolumeClaim: { claimName: 'a-claim' } } },
        },
        ['--audit-log=/var/audit/audit.log', 'mountPath: /var/audit', 'claimName: a-claim'],
      ],
      [{ certManager: { enabled: true, issuerRef: { kind: 'ClusterIssuer', name: 'ca' } } }, ['kind: ClusterIssuer']],
      [{ prometheusOperator: { enabled: true, labels: { a: 'selected' } } }, ['a: selected']],
      [{ prometheusOperator: { enabled: true, tokenSecret: { name: 'a-token', key: 'b' } } }, ['name: a-token']],
      [
        { networkPolicy: { apiServerCIDRs: ['192.0.2.0/28'], apiServerPorts: [16443] } },
        ['cidr: 192.0.2.0/28', 'port: 16443'],
      ],
    ];
    const plain = stringify(await helmTemplate({}));
    for (const [values, texts] of effects) {
      const rendered = stringify(await helmTemplate(values));
      for (const text of texts) {
        expect(plain).not.to.include(text);
        expect(rendered, JSON.stringify(values)).to.include(text);
      }
    }
    const reached = new Set(
      [...effects.map(([values]) => values), ...Object.values(VARIANTS).map(({ values }) => values)].flatMap(pathsOf),
    );
    const declared = pathsOf(parse(await readFile(join(CHART, 'values.yaml'), 'utf8')) as object);
    const untested = declared.filter(
      (path) => ![...reached].some((other) => other === path || other.startsWith(`${path}.`)),
    );
    expect(untested).to.deep.equal(['crds.enabled', 'networkPolicy.enabled']);
    const without = stringify(await helmTemplate({ networkPolicy: { enabled: false }, crds: { enabled: false } }));
    expect(without).not.to.match(/kind: (NetworkPolicy|CustomResourceDefinition)/);
    expect(without, 'the policy that stays').to.include(`policyName: ${KEPT_POLICY.name}`);
  });

  it('gives the process guest a template that it can read, and only what the values set', async () => {
    for (const [values, expected] of [
      [{ guest: { responder: RESPONDER } }, RESPONDER],
      [{ guest: { responder: { priorityClassName: 'r-class' } } }, { priorityClassName: 'r-class' }],
      [{}, undefined],
    ] as const) {
      const objects = (await helmTemplate(values)) as DeploymentManifest[];
      const guest = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'holdfast-guest');
      const { env = [] } = guest?.spec?.template.spec.containers[0] ?? {};
      const template = env.find(({ name }) => name === variableOf(GUEST_SETTINGS.responderTemplate))?.value;
      expect(template && parseResponderTemplate(template)).to.deep.equal(expected);
    }
  });

  // Overlays add up parts of the base, and components leave out the others: no object may be forgotten in either.
  for (const name of readdirSync(join(MANIFESTS, 'overlays'))) {
    it(`renders a variant for the overlay ${name}, whose objects are those of the base with its components`, async () => {
      const overlay = await kustomizeBuild(join(MANIFESTS, 'overlays', name));
      const base = await kustomizeBase(VARIANTS[name]!.components);
      expect(overlay.map(keyOf)).to.have.members(base.map(keyOf));
      for (const object of base)
        expect(
          overlay.find((other) => keyOf(other) === keyOf(object)),
          keyOf(object),
        ).to.deep.equal(object);
    });
  }
});

/** Helm expects it to exist, or creates it by a flag. */
function isNamespaceOfRelease({ kind, metadata }: Manifest): boolean {
  return kind === 'Namespace' && metadata.name === 'holdfast-system';
}

/** The objects that stay, which kustomize has apart, and those of `helm test`. */
function isOnlyInChart({ metadata: { annotations } }: Manifest): boolean {
  return annotations?.['helm.sh/resource-policy'] !== undefined || annotations?.['helm.sh/hook'] !== undefined;
}

function expectHelmLabels({ metadata }: Manifest): void {
  expect(metadata.labels).to.include({
    'app.kubernetes.io/managed-by': 'Helm',
    'app.kubernetes.io/instance': 'holdfast',
  });
}

/** The path of each value that is no object, or an empty one. */
function pathsOf(values: object): string[] {
  return Object.entries(values).flatMap(([key, value]: [string, unknown]) => {
    const isInner =
      typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
    return isInner ? pathsOf(value).map((path) => `${key}.${path}`) : [key];
  });
}
