import { expect } from 'chai';
import type { AddressPool } from '../api/address-pool.js';
import type { Client } from '../kube/client.js';
import { StatusError } from '../kube/errors.js';
import { CommandError } from './exit-code.js';
import { findPool, similarNames } from './find-pool.js';

function pool(name: string, network: string, namespace?: string): AddressPool {
  const annotations = namespace === undefined ? {} : { 'ipam.holdfast.dev/nad-namespace': namespace };
  return { metadata: { name, annotations }, spec: { network, subnets: [{ cidr: '10.0.0.0/24' }] } };
}

const POOLS = [pool('blue.tryout', 'blue', 'tryout'), pool('blue.lab', 'blue', 'lab'), pool('office', 'floor-2')];

function clientOf(mayList: boolean): Pick<Client, 'get' | 'list'> {
  const refuse = (status: number, reason: string, name = '') =>
    Promise.reject(new StatusError({ request: 'GET', status, reason, message: 'no', details: { name } }));
  return {
    get: (_resource: unknown, { name }: { name: string }) => {
      const found = POOLS.find(({ metadata }) => metadata.name === name);
      return found === undefined ? refuse(404, 'NotFound', name) : Promise.resolve(found);
    },
    list: () => (mayList ? Promise.resolve({ items: POOLS, resourceVersion: '1' }) : refuse(403, 'Forbidden')),
  } as unknown as Pick<Client, 'get' | 'list'>;
}

async function messageFor(name: string, mayList = true): Promise<string> {
  const error: unknown = await findPool(name, clientOf(mayList)).catch((thrown: unknown) => thrown);
  expect(error).to.be.instanceOf(CommandError);
  return (error as CommandError).message;
}

describe('a pool that a user names', () => {
  it('is found by its name', async () => {
    expect((await findPool('office', clientOf(true))).metadata.name).to.equal('office');
  });

  for (const [what, given, suggested] of [
    ['the name of its network', 'blue', 'blue.lab, blue.tryout'],
    ['its namespace', 'tryout', 'blue.tryout'],
    ['the network of an pool of an administrator', 'floor-2', 'office'],
    ['capitals', 'Office', 'office'],
    ['the beginning of its name', 'off', 'office'],
    ['a part of its name', 'lue.lab', 'blue.lab'],
    ['a wrong namespace', 'blue.nowhere', 'blue.lab, blue.tryout'],
  ] as const)
    it(`is suggested for ${what}`, async () => {
      expect(await messageFor(given)).to.equal(`AddressPool ${given} does not exist: did you mean ${suggested}?`);
    });

  for (const [when, given, mayList] of [
    ['no pool is similar', 'zebra', true],
    ['the user may not list pools', 'blue', false],
  ] as const)
    it(`gets no suggestion if ${when}`, async () => {
      expect(await messageFor(given, mayList)).to.include('run kubectl get apools');
    });
});

describe('similar names', () => {
  for (const [text, names, expected] of [
    ['wbe', ['web', 'db'], ['web']],
    ['weeb', ['web', 'db'], ['web']],
    ['wb', ['web', 'db'], ['db', 'web']],
    ['Web', ['web'], ['web']],
    ['web', ['web-1', 'web-2', 'db'], ['web-1', 'web-2']],
    ['web-1', ['web'], ['web']],
    ['shop', ['eu-shop', 'eu-chop'], ['eu-shop']],
    ['zebra', ['web', 'db'], []],
    ['web', ['web-2', 'web', 'wbe', 'my-web'], ['web', 'wbe', 'web-2', 'my-web']],
  ] as const)
    it(`of "${text}" in ${names.slice(0, 3).join(', ')} are ${expected.join(', ') || 'none'}`, () => {
      expect(
        similarNames(
          text,
          names.map((name) => ({ name })),
        ),
      ).to.deep.equal(expected);
    });

  it('include those of which an alias is similar, ranked by the most similar text', () => {
    const pools = [
      { name: 'a', aliases: ['blue-2'] },
      { name: 'b', aliases: ['red', 'blue'] },
      { name: 'c', aliases: ['red'] },
    ];
    expect(similarNames('blue', pools)).to.deep.equal(['b', 'a']);
  });
});
