import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { StatusError } from '../../kube/errors.js';
import { PermittedReader } from '../reader.js';
import type { SubjectAccessReview } from '../../kube/resources.js';
import { workloadOf } from '../testing/healthy-cluster.js';
import { type ProbingReader, callWebhooks, missingRightsOf } from './probe.js';

const CONFIGURATIONS: KubeObject[] = [{ metadata: { name: 'holdfast-webhook' } }];
const CAUSE = 'Post "https://x.svc:443/": connection refused';

describe('a trial call of a webhook', () => {
  for (const [message, expected] of [
    [
      `failed calling webhook "launcher-pods.ipam.holdfast.dev": ${CAUSE}`,
      [
        {
          configuration: 'holdfast-webhook',
          error: `failed calling webhook "launcher-pods.ipam.holdfast.dev": ${CAUSE}`,
        },
      ],
    ],
    [
      `failed calling webhook "pods.example.org": ${CAUSE}`,
      [
        {
          configuration: "of pods.example.org, which is not Holdfast's",
          error: `failed calling webhook "pods.example.org": ${CAUSE}`,
        },
      ],
    ],
    [
      'admission webhook "launcher-pods.ipam.holdfast.dev" denied the request: no',
      [{ configuration: 'holdfast-webhook' }],
    ],
    ['pods "holdfast-doctor" is forbidden: violates PodSecurity', [{ configuration: 'holdfast-webhook' }]],
    ['admission webhook "pods.example.org" denied the request: no', []],
    ['admission webhook "pods.example.org" does not support dry run', []],
  ] as const)
    it(`tells whose webhook answers: ${message.slice(0, 70)}`, async () => {
      const error = new StatusError({ request: 'POST /pods', status: 400, reason: 'BadRequest', message });
      const client = { create: () => Promise.reject(error) } as unknown as ProbingReader['client'];
      expect(await callWebhooks(new PermittedReader(client), CONFIGURATIONS)).to.deep.equal(expected);
    });
});

describe('the rights of processes', () => {
  it('are those of all groups of a service account, also of the one of its namespace', async () => {
    const create = (_resource: unknown, review: SubjectAccessReview) => {
      const allowed = review.spec.groups?.includes('system:serviceaccounts:holdfast-system');
      return Promise.resolve({ ...review, status: { allowed } });
    };
    const reader = new PermittedReader({ create } as unknown as ProbingReader['client']);
    expect(await missingRightsOf(reader, [workloadOf('controller')])).to.deep.equal([]);
  });
});
