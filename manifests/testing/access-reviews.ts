import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import type { Manifest } from '../../bed/control-plane/objects.js';
import type { Client } from '../../kube/client.js';
import { SUBJECT_ACCESS_REVIEWS } from '../../kube/resources.js';

export interface Account {
  namespace: string;
  name: string;
}
export interface Attributes {
  group: string;
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
  verb: string;
}

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];

/** Service accounts and what RBAC grants to them. */
export const isRight = ({ kind }: Manifest) => /^(ServiceAccount|(Cluster)?Role(Binding)?)$/.test(kind);

/** @param key `resource.group[/subresource]`, in one namespace where `@`, of one name where `=` */
export function attributesOf(key: string, verb: string): Attributes {
  const [, resource = '', group = '', subresource, namespace, name] =
    /^([^.]+)\.([^/@=]*)(?:\/([^@=]+))?(?:@([^=]+))?(?:=(.+))?$/.exec(key) ?? [];
  return {
    resource,
    group,
    verb,
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  };
}

/** Whether RBAC allows an account to do it. */
export async function can(client: Client, { namespace, name }: Account, attributes: Attributes): Promise<boolean> {
  const user = `system:serviceaccount:${namespace}:${name}`;
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  const answer = await client.create(SUBJECT_ACCESS_REVIEWS, {
    metadata: {} as KubeObject['metadata'],
    spec: { user, groups, resourceAttributes: attributes },
  });
  return answer.status?.allowed === true;
}

/** Defines a test for each resource that the account has exactly these verbs on it. */
export function itHas(client: () => Client, account: Account, rights: Record<string, string>): void {
  for (const [key, verbs] of Object.entries(rights)) {
    it(`${account.name} has these verbs on ${key}: ${verbs || 'none'}`, async () => {
      const all = [...VERBS, 'serve'];
      const answers = await Promise.all(all.map((verb) => can(client(), account, attributesOf(key, verb))));
      const allowed = all.filter((_, i) => answers[i]);
      expect(allowed.sort()).to.deep.equal(verbs.split(' ').filter(Boolean).sort());
    });
  }
}
