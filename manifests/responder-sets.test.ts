import { expect } from 'chai';
import {
  type StatefulSet,
  responderBudget,
  responderNames,
  responderSet,
  serverClaim,
} from '../guest/responders/objects.js';
import type { ObjectMeta } from '../api/meta.js';
import { NETWORKS_ANNOTATION } from '../api/names.js';
import type { Client } from '../kube/client.js';
import { isForbidden } from '../kube/errors.js';
import { IPAM_CLAIMS, POD_DISRUPTION_BUDGETS, SECRETS, STATEFUL_SETS } from '../kube/resources.js';
import { compiledPool } from '../test/lease-objects.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from './testing/policy-cluster.js';

const NAMESPACE = 'holdfast-responders';
const POOL = compiledPool({ guest: { attachment: 'blue', dhcp: {} } });
const SET = responderSet(POOL, 'blue', {
  namespace: NAMESPACE,
  image: 'registry.example/holdfast:1.0.0',
  maxStalenessMs: 30_000,
  logLevel: 'info',
});

interface Container {
  name: string;
  image: string;
  volumeMounts: object[];
  ports?: object[];
  env?: object[];
  envFrom?: object[];
  securityContext: { capabilities: object; privileged?: boolean; allowPrivilegeEscalation: boolean };
}

interface PodSpec {
  serviceAccountName: string;
  automountServiceAccountToken: boolean;
  hostNetwork?: boolean;
  hostPID?: boolean;
  volumes: object[];
  containers: [Container, Container, ...Container[]];
  initContainers?: object[];
}

/** The set with another pod, or another name. */
function changed(change: (pod: PodSpec, set: StatefulSet) => void): StatefulSet {
  const set = structuredClone(SET);
  change(set.spec.template.spec as PodSpec, set);
  return set;
}

/** The set with another annotation of its pods. */
function annotated(key: string, value: string): StatefulSet {
  return changed((_, { spec }) =>
    Object.assign((spec.template.metadata as ObjectMeta).annotations ?? {}, { [key]: value }),
  );
}

describe('the admission policy for responders, on a kube-apiserver', function () {
  let own: Client;
  let cluster: PolicyCluster;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    own = await cluster.withToken({ namespace: 'holdfast-system', name: 'holdfast-guest' });
    const foreign = changed((pod) => (pod.serviceAccountName = 'default'));
    await untilDenied(() => own.create(STATEFUL_SETS, foreign, { dryRun: true }));
  });

  it('allows guest to create and change the responders of a pool, their budget and their claims', async () => {
    const { name } = (await own.create(STATEFUL_SETS, SET)).metadata;
    const operations = [{ op: 'replace' as const, path: '/spec/template', value: SET.spec.template }];
    await own.patch(STATEFUL_SETS, { namespace: NAMESPACE, name }, { type: 'json', operations });
    await own.create(POD_DISRUPTION_BUDGETS, responderBudget(SET));
    const [first = ''] = responderNames(name);
    await own.create(IPAM_CLAIMS, serverClaim(first, POOL, NAMESPACE));
    await own.delete(IPAM_CLAIMS, { namespace: NAMESPACE, name: first });
    await own.delete(STATEFUL_SETS, { namespace: NAMESPACE, name });
  });

  const denied: { name: string; set: StatefulSet; message: string }[] = [
    {
      name: 'of another name',
      set: changed((_, { metadata }) => (metadata.name = 'other')),
      message: 'writes only StatefulSets of responders',
    },
    {
      name: 'of another account',
      set: changed((pod) => (pod.serviceAccountName = 'default')),
      message: 'have the account holdfast-responder',
    },
    {
      name: 'that mounts the token everywhere',
      set: changed((pod) => (pod.automountServiceAccountToken = true)),
      message: 'only into the container table',
    },
    {
      name: 'in the network of its node',
      set: changed((pod) => (pod.hostNetwork = true)),
      message: 'no namespace of their node',
    },
    {
      name: 'with the processes of its node',
      set: changed((pod) => (pod.hostPID = true)),
      message: 'no namespace of their node',
    },
    {
      name: 'with a path of its node',
      set: changed((pod) => pod.volumes.push({ name: 'root', hostPath: { path: '/' } })),
      message: 'only the volumes socket and token',
    },
    {
      name: 'with a Secret',
      set: changed((pod) => pod.volumes.push({ name: 'secret', secret: { secretName: 'x' } })),
      message: 'only the volumes socket and token',
    },
    {
      name: 'with a Secret in the volume of the token',
      set: changed(({ volumes }) =>
        volumes.splice(1, 1, { name: 'token', projected: { sources: [{ secret: { name: 'x' } }] } }),
      ),
      message: 'read no Secret',
    },
    {
      name: 'with a Secret in a variable',
      set: changed(({ containers }) => {
        containers[0].env = [{ name: 'X', valueFrom: { secretKeyRef: { name: 'x', key: 'y' } } }];
      }),
      message: 'read no Secret',
    },
    {
      name: 'with Secrets as variables',
      set: changed(({ containers }) => (containers[0].envFrom = [{ secretRef: { name: 'x' } }])),
      message: 'read no Secret',
    },
    {
      name: 'with a claim for a volume',
      set: changed((_, { spec }) => {
        const resources = { requests: { storage: '1Mi' } };
        spec.volumeClaimTemplates = [
          { metadata: { name: 'socket' }, spec: { accessModes: ['ReadWriteOnce'], resources } },
        ];
      }),
      message: 'only the volumes socket and token',
    },
    {
      name: 'on a network of a tenant',
      set: annotated(NETWORKS_ANNOTATION, '[{"name":"blue","namespace":"vms","interface":"guest0"}]'),
      message: 'by a NetworkAttachmentDefinition of their namespace',
    },
    {
      name: 'on a second network',
      set: annotated(NETWORKS_ANNOTATION, 'vms/blue'),
      message: 'by a NetworkAttachmentDefinition of their namespace',
    },
    {
      name: 'with another default network',
      set: annotated('v1.multus-cni.io/default-network', 'vms/blue'),
      message: 'by a NetworkAttachmentDefinition of their namespace',
    },
    {
      name: 'with a third container',
      set: changed((pod) => pod.containers.push({ ...pod.containers[0], name: 'third', ports: [] })),
      message: 'the containers table and packets',
    },
    {
      name: 'with an init container',
      set: changed((pod) => (pod.initContainers = [{ name: 'first', image: 'x' }])),
      message: 'the containers table and packets',
    },
    { name: 'of two images', set: changed((pod) => (pod.containers[1].image = 'other')), message: 'of one image' },
    {
      name: 'with a privileged container',
      set: changed(({ containers }) => {
        containers[1].securityContext.privileged = true;
        containers[1].securityContext.allowPrivilegeEscalation = true;
      }),
      message: 'drop all capabilities',
    },
    {
      name: 'with another capability',
      set: changed(({ containers }) => {
        containers[1].securityContext.capabilities = { drop: ['ALL'], add: ['NET_RAW', 'SYS_ADMIN'] };
      }),
      message: 'only the container packets has a capability, NET_RAW',
    },
    {
      name: 'whose container with the token has a capability',
      set: changed(({ containers }) => {
        containers[0].securityContext.capabilities = { drop: ['ALL'], add: ['NET_RAW'] };
      }),
      message: 'only the container packets has a capability, NET_RAW',
    },
    {
      name: 'whose container with the capability has the token',
      set: changed(({ containers }) => containers[1].volumeMounts.push({ name: 'token', mountPath: '/token' })),
      message: 'has no token',
    },
    {
      name: 'with a port of its node',
      set: changed(({ containers }) => (containers[0].ports = [{ containerPort: 1, hostPort: 1 }])),
      message: 'no port or device of their node',
    },
  ];
  for (const { name, set, message } of denied) {
    it(`denies guest a StatefulSet ${name}`, () =>
      expectDenial(own.create(STATEFUL_SETS, set, { dryRun: true }), message));
  }

  it('lets administrators run what they like', async () => {
    const other = changed((pod) => (pod.serviceAccountName = 'default'));
    await cluster.admin.create(STATEFUL_SETS, other, { dryRun: true });
  });

  it('does not let a responder write or read more than it needs', async () => {
    const responder = await cluster.withToken({ namespace: NAMESPACE, name: 'holdfast-responder' });
    const refused = [
      () => responder.list(SECRETS, { namespace: NAMESPACE }),
      () => responder.create(IPAM_CLAIMS, serverClaim('x', POOL, NAMESPACE), { dryRun: true }),
      () => responder.create(STATEFUL_SETS, SET, { dryRun: true }),
    ];
    for (const attempt of refused) {
      const error: unknown = await attempt().catch((reason: unknown) => reason);
      expect(isForbidden(error)).to.equal(true);
    }
    await responder.list(IPAM_CLAIMS);
  });
});
