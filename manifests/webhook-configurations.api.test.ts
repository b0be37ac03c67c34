import { join } from 'node:path';
import { expect } from 'chai';
import { LAUNCHER_CREATOR, NETWORKS_ANNOTATION } from '../api/names.js';
import { readManifests, resourceOf } from '../bed/control-plane/objects.js';
import { MANIFESTS } from '../bed/holdfast/manifests.js';
import { until } from '../bed/processes/wait.js';
import type { JsonPatchOperation } from '../kube/client.js';
import type { Resource } from '../kube/resource.js';
import {
  ADDRESS_POOLS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  SECRETS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  type WebhookConfigurationObject,
} from '../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from './testing/policy-cluster.js';
import { LAUNCHER_LABELS, VMI_OWNER } from '../test/objects/launcher-pods.js';

const SYSTEM = 'holdfast-system';
const WEBHOOK = `system:serviceaccount:${SYSTEM}:holdfast-webhook`;
const IPAM = `system:serviceaccount:${SYSTEM}:holdfast-ipam`;
const KUBEVIRT = 'system:serviceaccount:kubevirt:kubevirt-controller';
const ADMINISTRATOR = 'administrator';
const BUNDLE = Buffer.from('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n').toString('base64');
const FILES = [
  'base/claims/webhook/mutating-webhook.yaml',
  'base/capacity/mutating-webhook.yaml',
  'base/ipam/validating-webhook.yaml',
];

type Configurations = [string, Resource<WebhookConfigurationObject>, string];
const CONFIGURATIONS: Configurations[] = [
  [WEBHOOK, MUTATING_WEBHOOK_CONFIGURATIONS, 'holdfast-webhook'],
  [WEBHOOK, MUTATING_WEBHOOK_CONFIGURATIONS, 'holdfast-webhook-capacity'],
  [IPAM, VALIDATING_WEBHOOK_CONFIGURATIONS, 'holdfast-ipam'],
];

const ANYTHING = { apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], operations: ['*'] };
const ELSEWHERE = { url: 'https://attacker.example/' };
const ONE_MORE = {
  name: 'more.ipam.holdfast.dev',
  admissionReviewVersions: ['v1'],
  sideEffects: 'None',
  clientConfig: ELSEWHERE,
  rules: [ANYTHING],
};
const WEBHOOKS_ONLY = 'may only change clientConfig.caBundle of the webhooks in a webhook configuration';

/** Changes that are refused to Holdfast's identities, whether or not they set a caBundle as well. */
const MUTANTS: Record<string, { change: JsonPatchOperation[]; refusal?: string }> = {
  'a rule for everything': { change: [{ op: 'add', path: '/webhooks/0/rules/0', value: ANYTHING }] },
  'a wider rule': { change: [{ op: 'replace', path: '/webhooks/0/rules/0/resources', value: ['*'] }] },
  'another operation': { change: [{ op: 'add', path: '/webhooks/0/rules/0/operations/0', value: 'DELETE' }] },
  'a URL in place of the Service': { change: [{ op: 'replace', path: '/webhooks/0/clientConfig', value: ELSEWHERE }] },
  'another Service': { change: [{ op: 'replace', path: '/webhooks/0/clientConfig/service/name', value: 'attacker' }] },
  'another path': { change: [{ op: 'replace', path: '/webhooks/0/clientConfig/service/path', value: '/all' }] },
  'another failurePolicy': { change: [{ op: 'replace', path: '/webhooks/0/failurePolicy', value: 'Ignore' }] },
  'another timeout': { change: [{ op: 'replace', path: '/webhooks/0/timeoutSeconds', value: 30 }] },
  'another matchPolicy': { change: [{ op: 'replace', path: '/webhooks/0/matchPolicy', value: 'Exact' }] },
  'no namespaceSelector': { change: [{ op: 'remove', path: '/webhooks/0/namespaceSelector' }] },
  'another objectSelector': {
    change: [{ op: 'replace', path: '/webhooks/0/objectSelector', value: { matchLabels: { a: 'b' } } }],
  },
  'no matchConditions': { change: [{ op: 'remove', path: '/webhooks/0/matchConditions' }] },
  'one more webhook': { change: [{ op: 'add', path: '/webhooks/0', value: ONE_MORE }] },
  'no webhook': { change: [{ op: 'remove', path: '/webhooks/0' }] },
  'a webhook of another name': {
    change: [{ op: 'replace', path: '/webhooks/0/name', value: 'other.ipam.holdfast.dev' }],
  },
  'another label': { change: [{ op: 'add', path: '/metadata/labels/a', value: 'b' }], refusal: 'metadata.labels' },
  'no labels': { change: [{ op: 'remove', path: '/metadata/labels' }], refusal: 'metadata.labels' },
  'an annotation': {
    change: [{ op: 'add', path: '/metadata/annotations', value: { a: 'b' } }],
    refusal: 'metadata.annotations',
  },
  'a finalizer': {
    change: [{ op: 'add', path: '/metadata/finalizers', value: ['a.b/c'] }],
    refusal: 'metadata.finalizers',
  },
};
/** These change nothing. */
const WITHOUT_EFFECT = new Set([
  'holdfast-ipam no namespaceSelector',
  'holdfast-webhook-capacity another failurePolicy',
]);

describe('webhook configurations on a kube-apiserver', function () {
  let cluster: PolicyCluster;

  async function change(user: string, [, resource, name]: Configurations, operations: JsonPatchOperation[]) {
    return (await cluster.as(user)).patch(resource, { name }, { type: 'json', operations });
  }

  const bundle = (value: string): JsonPatchOperation => ({
    op: 'add',
    path: '/webhooks/0/clientConfig/caBundle',
    value,
  });

  // before usePolicyCluster, whose hook closes the clients
  after(async () => {
    for (const [, resource, name] of CONFIGURATIONS) await cluster.admin.delete(resource, { name });
    // they would refuse the objects of other suites on this server
    const pool = { metadata: { name: 'blue' }, spec: { network: 'blue', subnets: [{ cidr: '10.0.0.0/24' }] } };
    await until('no webhook checks pools', () => cluster.admin.create(ADDRESS_POOLS, pool, { dryRun: true }));
    const annotations = { [NETWORKS_ANNOTATION]: 'blue', [LAUNCHER_CREATOR]: KUBEVIRT };
    const launcher = { labels: LAUNCHER_LABELS, ownerReferences: [VMI_OWNER], annotations };
    await until('no webhook changes launchers', () => cluster.createPod(KUBEVIRT, launcher));
  });

  const setUp = async (started: PolicyCluster) => {
    cluster = started;
    const shipped = await Promise.all(FILES.map((file) => readManifests(join(MANIFESTS, file))));
    for (const object of shipped.flat()) await cluster.admin.create(resourceOf(object), object);
    const client = await cluster.as(WEBHOOK);
    const mine = { metadata: { name: 'mine' }, webhooks: [] };
    await untilDenied(() => client.create(MUTATING_WEBHOOK_CONFIGURATIONS, mine, { dryRun: true }));
  };
  usePolicyCluster(this, setUp, {});

  for (const configuration of CONFIGURATIONS) {
    const [user, resource, name] = configuration;
    describe(`${resource.kind} ${name}`, () => {
      it('gets its caBundle from the identity that serves it, repeatedly', async () => {
        await change(user, configuration, [bundle(BUNDLE)]);
        await change(user, configuration, [{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }]);
        await change(user, configuration, [bundle(BUNDLE)]);
      });

      for (const [what, { change: operations, refusal = WEBHOOKS_ONLY }] of Object.entries(MUTANTS)) {
        if (WITHOUT_EFFECT.has(`${name} ${what}`)) continue;
        it(`does not get ${what} from that identity or from a service account of the same name in another namespace`, async () => {
          const namesake = user.replace(SYSTEM, 'tenant');
          for (const who of [user, namesake]) {
            await expectDenial(change(who, configuration, operations), refusal);
            await expectDenial(change(who, configuration, [...operations, ...renewed(operations)]), refusal);
          }
        });
      }

      it('cannot be deleted by that identity, which cannot create another one either', async () => {
        const client = await cluster.as(user);
        await expectDenial(client.delete(resource, { name }), 'not create or delete them');
        const mine = { metadata: { name: 'mine' }, webhooks: [] };
        await expectDenial(client.create(resource, mine), 'not create or delete them');
      });
    });
  }

  /** The caBundle besides, as a process sets it; not if the webhook is another one then. */
  function renewed(operations: JsonPatchOperation[]): JsonPatchOperation[] {
    const isWebhooks = operations.some(({ path }) => path === '/webhooks/0' || path === '/webhooks/0/clientConfig');
    return isWebhooks ? [] : [bundle(BUNDLE)];
  }

  describe('the Secrets of certificates', () => {
    const ref = { namespace: SYSTEM, name: 'holdfast-webhook-tls' };
    const apply = async () => {
      const [object] = await readManifests(join(MANIFESTS, 'base', 'claims', 'webhook', 'secret.yaml'));
      const patch = { type: 'apply', object: object!, fieldManager: 'kubectl', force: true } as const;
      return cluster.admin.patch(SECRETS, ref, patch);
    };

    for (const type of [undefined, 'kubernetes.io/tls']) {
      it(`keep their data and type when the manifest is applied again, if the type is ${type ?? 'that of the manifest'}`, async () => {
        const data = { 'tls.crt': BUNDLE, 'tls.key': BUNDLE, 'ca.crt': BUNDLE, 'ca.key': BUNDLE };
        if (type === undefined) await apply();
        else await cluster.admin.create(SECRETS, { metadata: ref, type, data });
        const { type: stored, ...secret } = await cluster.admin.get(SECRETS, ref);
        await (await cluster.as(WEBHOOK)).replace(SECRETS, { ...secret, type: stored, data } as typeof secret);
        await apply();
        const after = await cluster.admin.get(SECRETS, ref);
        expect(after.data).to.deep.equal(data);
        expect(after.type).to.equal(type ?? 'Opaque');
        await cluster.admin.delete(SECRETS, ref);
      });
    }
  });

  describe('for administrators', () => {
    it('can be changed without limits by administrators', async () => {
      const label: JsonPatchOperation = { op: 'add', path: '/metadata/labels/a', value: 'b' };
      const widened = MUTANTS['a wider rule']!.change;
      for (const configuration of CONFIGURATIONS) await change(ADMINISTRATOR, configuration, [...widened, label]);
    });
  });
});
