import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { KubeObject } from '../../api/meta.js';
import { IPS_ALLOCATED } from '../../api/names.js';
import { responderSetName } from '../../api/responders.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { nad } from '../../test/objects/pool-objects.js';
import { type ResponderSettings, responderBudget, responderNames, responderSet, serverClaim } from './objects.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { type ObservedResponders, planResponders } from './plan.js';

const NAMESPACE = 'holdfast-responders';
const SETTINGS: ResponderSettings = {
  image: 'registry.example/holdfast:1.0.0',
  imagePullSecrets: [{ name: 'registry' }],
  maxStalenessMs: 30_000,
  logLevel: 'info',
  template: {},
};
const LAYER2 = { name: 'blue', type: 'bridge' };
const POOL = compiledPool({ guest: { attachment: 'blue', dhcp: {} }, nodeSelector: { zone: 'a' } });
const SECOND = { ...POOL, name: 'second', uid: 'second-uid' };
const SET = responderSet(POOL, 'blue', SETTINGS);
const [FIRST_NAME = '', SECOND_NAME = ''] = responderNames(SET.metadata.name);

function observed(more: Partial<ObservedResponders> = {}, attachment: object = LAYER2): ObservedResponders {
  const nads = new Map([[`${NAMESPACE}/blue`, nad(`${NAMESPACE}/blue`, attachment)]]);
  const none = { sets: [], budgets: [], claims: [], pods: [] };
  return { pools: [POOL], unreadable: [], nads, ...none, settings: SETTINGS, maxPools: 32, ...more };
}

function claims(...names: string[]): IPAMClaim[] {
  return names.map((name) => serverClaim(name, POOL));
}

const RUNNING = { sets: [SET], budgets: [responderBudget(SET)], claims: claims(FIRST_NAME, SECOND_NAME) };

/** Kind and object of each action. */
function actions(given: ObservedResponders): string[] {
  return runAtOnce(planResponders(given)).map((action) => {
    switch (action.kind) {
      case 'report':
        return `${action.reason} on ${action.pool.name}`;
      case 'create-claim':
        return `${action.kind} ${action.claim.metadata.name}`;
      case 'create-budget':
        return action.kind;
      case 'create-set':
      case 'update-set':
        return `${action.kind} ${action.set.metadata.name}`;
      default:
        return `${action.kind} ${action.object.metadata.name}`;
    }
  });
}

describe('the plan for responders', () => {
  const pod = (name: string): KubeObject => ({ metadata: { name, namespace: NAMESPACE } });
  const changed = responderSet(POOL, 'blue', { ...SETTINGS, image: 'registry.example/holdfast:2.0.0' });
  const failed = claims(FIRST_NAME).map((claim): IPAMClaim => ({
    ...claim,
    status: {
      ips: [],
      conditions: [
        { type: IPS_ALLOCATED, status: 'False', reason: 'SubnetExhausted', message: 'full', lastTransitionTime: '' },
      ],
    },
  }));
  const table: { name: string; given: ObservedResponders; expect: string[] }[] = [
    {
      name: 'creates a claim for each responder, the StatefulSet and its disruption budget',
      given: observed(),
      expect: [
        `create-claim ${FIRST_NAME}`,
        `create-claim ${SECOND_NAME}`,
        `create-set ${SET.metadata.name}`,
        'create-budget',
      ],
    },
    { name: 'does nothing if all of them exist', given: observed(RUNNING), expect: [] },
    {
      name: 'updates the StatefulSet after an upgrade',
      given: observed({ ...RUNNING, sets: [changed] }),
      expect: [`update-set ${SET.metadata.name}`],
    },
    {
      name: 'waits for the end of a StatefulSet that a user deletes',
      given: observed({
        ...RUNNING,
        sets: [{ metadata: { ...changed.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }],
      }),
      expect: [],
    },
    {
      name: 'deletes StatefulSet and budget of a pool that is gone, but not the claims whose pods may run',
      given: observed({ ...RUNNING, pools: [], pods: [pod(FIRST_NAME)] }),
      expect: [`delete-set ${SET.metadata.name}`, `delete-budget ${SET.metadata.name}`],
    },
    {
      name: 'keeps the claim of a pod that still ends',
      given: observed({ pools: [], claims: RUNNING.claims, pods: [pod(FIRST_NAME)] }),
      expect: [`delete-claim ${SECOND_NAME}`],
    },
    {
      name: 'deletes the claims after the pods, so that their addresses cool down when nothing uses them',
      given: observed({ pools: [], claims: RUNNING.claims }),
      expect: [`delete-claim ${FIRST_NAME}`, `delete-claim ${SECOND_NAME}`],
    },
    {
      name: 'deletes no claims of others in the namespace',
      given: observed({
        pools: [],
        claims: [{ ...claims('other')[0]!, metadata: { name: 'other', namespace: NAMESPACE } }],
      }),
      expect: [],
    },
    {
      name: 'keeps the responders of a pool that was edited to be invalid',
      given: observed({ ...RUNNING, pools: [], unreadable: [POOL.uid] }),
      expect: [],
    },
    {
      name: 'runs no responders without the NAD, and says which one is missing',
      given: observed({ nads: new Map() }),
      expect: ['ResponderAttachmentInvalid on blue'],
    },
    {
      name: 'keeps responders whose NAD is gone, because they have their network',
      given: observed({ ...RUNNING, sets: [changed], nads: new Map() }),
      expect: ['ResponderAttachmentInvalid on blue'],
    },
    {
      name: 'reports a responder without an address',
      given: observed({ ...RUNNING, claims: [...failed, ...claims(SECOND_NAME)] }),
      expect: ['ResponderWithoutAddress on blue'],
    },
    {
      name: 'runs responders of the oldest pools only, if there are more than allowed',
      given: observed({ ...RUNNING, pools: [POOL, { ...SECOND, network: 'green' }], maxPools: 1 }),
      expect: ['ResponderLimitReached on second'],
    },
    {
      name: 'runs responders of one pool of a network only, because their claims would get addresses of the oldest',
      given: observed({ ...RUNNING, pools: [POOL, SECOND] }),
      expect: ['ResponderLimitReached on second'],
    },
    {
      name: 'counts no pool that an older one of its network excludes',
      given: observed({
        ...RUNNING,
        pools: [POOL, SECOND, { ...SECOND, name: 'third', network: 'green' }],
        maxPools: 2,
      }),
      expect: ['ResponderAttachmentInvalid on third', 'ResponderLimitReached on second'],
    },
  ];
  for (const { name, given, expect: wanted } of table) {
    it(name, () => expect(actions(given)).to.deep.equal(wanted));
  }

  it('names the pool that has the responders of the network', () => {
    const [action] = runAtOnce(planResponders(observed({ ...RUNNING, pools: [POOL, SECOND] })));
    expect(action).to.have.property('message').that.includes('the older AddressPool blue has those of network "blue"');
  });

  const attachments: { name: string; config: object; why: string }[] = [
    { name: 'with an IPAM', config: { ...LAYER2, ipam: { type: 'static' } }, why: 'has an ipam' },
    { name: 'of another network', config: { ...LAYER2, name: 'green' }, why: 'is for network "green", not "blue"' },
    {
      name: 'of another plugin',
      config: { ...LAYER2, type: 'kube-ovn' },
      why: 'cannot attach them: its plugin is "kube-ovn"',
    },
    { name: 'that cannot be read', config: { ...LAYER2, name: 5 }, why: 'is invalid' },
  ];
  for (const { name, config, why } of attachments) {
    it(`refuses a NAD ${name}`, () => {
      const [action] = runAtOnce(planResponders(observed({}, config)));
      expect(action).to.have.property('message').that.includes(why);
    });
  }
});

describe('the StatefulSet of responders', () => {
  const template = JSON.parse(JSON.stringify(SET.spec.template)) as {
    metadata: { annotations: Record<string, string> };
    spec: { containers: Record<string, unknown>[]; volumes: object[] } & Record<string, unknown>;
  };
  const { spec } = template;
  const [table, packets] = spec.containers;

  it('has another name for another pool of the same name, and a valid one for any pool', () => {
    expect(responderSetName({ uid: 'x' })).not.to.equal(responderSetName({ uid: 'y' }));
    expect(SET.metadata.name).to.match(/^holdfast-responder-[0-9a-f]{8}$/);
  });

  it('attaches two pods on different nodes to the network by the NAD', () => {
    expect(SET.spec.replicas).to.equal(2);
    expect(JSON.parse(template.metadata.annotations['k8s.v1.cni.cncf.io/networks'] ?? '')).to.deep.equal([
      { name: 'blue', namespace: NAMESPACE, interface: 'guest0' },
    ]);
    expect(spec.topologySpreadConstraints).to.have.nested.property('[0].whenUnsatisfiable', 'DoNotSchedule');
    expect(spec.nodeSelector).to.deep.equal({ 'kubernetes.io/os': 'linux', zone: 'a' });
  });

  it('gives the token only to the container that reads no packets', () => {
    expect(spec.automountServiceAccountToken).to.equal(false);
    const mounts = (container: unknown) => (container as { volumeMounts: { name: string }[] }).volumeMounts;
    expect(mounts(table).map(({ name }) => name)).to.deep.equal(['socket', 'token']);
    expect(mounts(packets).map(({ name }) => name)).to.deep.equal(['socket']);
  });

  it('gives NET_RAW, and no other capability, only to the container that has no token', () => {
    const capabilities = (container: unknown) =>
      (container as { securityContext: { capabilities: object } }).securityContext.capabilities;
    expect([table, packets].map(capabilities)).to.deep.equal([{ drop: ['ALL'] }, { drop: ['ALL'], add: ['NET_RAW'] }]);
  });

  it('does not restart the table because it starts or answers slowly on a busy node', () => {
    expect(table).to.have.property('livenessProbe').that.includes({ initialDelaySeconds: 30, timeoutSeconds: 10 });
    expect(table).to.have.nested.property('readinessProbe.timeoutSeconds', 5);
  });

  it('has the settings of the template, which do not replace what Holdfast needs', () => {
    const withTemplate = responderSet(POOL, 'blue', {
      ...SETTINGS,
      template: {
        resources: { limits: { memory: '1Gi' } },
        packetsResources: { requests: { cpu: '1' } },
        tolerations: [{ key: 'network', operator: 'Exists' }],
        nodeSelector: { zone: 'b', network: 'fast' },
        priorityClassName: 'network',
        podAnnotations: { 'example.com/scrape': 'true' },
        podLabels: { team: 'network' },
      },
    });
    const { metadata, spec: pod } = JSON.parse(JSON.stringify(withTemplate.spec.template)) as typeof template;
    const resources = pod.containers.map((container) => container.resources);
    expect(resources).to.deep.equal([
      { requests: { cpu: '20m', memory: '96Mi' }, limits: { memory: '1Gi' } },
      { requests: { cpu: '1', memory: '32Mi' }, limits: { memory: '128Mi' } },
    ]);
    expect(pod).to.deep.include({
      tolerations: [{ key: 'network', operator: 'Exists' }],
      nodeSelector: { 'kubernetes.io/os': 'linux', zone: 'a', network: 'fast' },
      priorityClassName: 'network',
    });
    expect(metadata).to.deep.include({
      labels: { team: 'network', ...SET.metadata.labels },
      annotations: { 'example.com/scrape': 'true', ...template.metadata.annotations },
    });
    expect(withTemplate.spec.selector, 'which cannot change').to.deep.equal(SET.spec.selector);
    expect(withTemplate.metadata.annotations, 'so that the pods are replaced').not.to.deep.equal(
      SET.metadata.annotations,
    );
  });

  it('runs both containers with one image', () => {
    expect([table?.image, packets?.image]).to.deep.equal([SETTINGS.image, SETTINGS.image]);
    expect(spec.imagePullSecrets).to.deep.equal(SETTINGS.imagePullSecrets);
  });
});
