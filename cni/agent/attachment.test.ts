import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import { joinKey } from '../../api/meta.js';
import { DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION } from '../../api/names.js';
import { TransportError } from '../../kube/errors.js';
import type { ObjectRef, Resource } from '../../kube/resource.js';
import { TestInformer } from '../../kube/testing/test-informer.js';
import { NETWORK_CONFIG, pluginRequest } from '../testing/cni-requests.js';
import { apiError } from '../../test/api-errors.js';
import { ManualClock } from '../../test/manual-clock.js';
import { adminPool, nadDefinition } from '../../test/objects/pool-objects.js';
import { asReadError, CniError } from './cni-error.js';
import { AttachmentResolver } from './attachment.js';
import { PoolLookup } from './pool-lookup.js';
import { type AddRequest, readCniRequest } from './request.js';

const CALL = { signal: new AbortController().signal };
const OTHER_CONFIG = { ...NETWORK_CONFIG, bridge: 'br2' };

type Annotations = Record<string, string>;
type Nads = Record<string, object>;

interface Given {
  /** Of the pod in the cache. */
  annotations: Annotations;
  /** Configs by `namespace/name`, as they were read before. */
  nads?: Nads;
  /** The objects of the API server, if they differ; undefined: it does not answer. */
  live?: { annotations?: Annotations; nads?: Nads } | undefined;
  interfaceName?: string;
  /** Keys of the config on stdin. */
  config?: object;
}

/** Resolves an ADD, by default with the config of the NADs below. @returns the NAD and the live reads, or the error */
async function locate(given: Given): Promise<{ nad: string; position: number; reads: string[] }> {
  const { annotations, interfaceName = 'net1', config = {} } = given;
  const { nads = { 'vms/blue': NETWORK_CONFIG, 'other/blue': OTHER_CONFIG, 'multus/blue': NETWORK_CONFIG } } = given;
  const live = 'live' in given ? given.live : {};
  const reads: string[] = [];
  const podWith = (found: Annotations) => ({
    metadata: { namespace: 'vms', name: 'p1', uid: 'p1-uid', annotations: found },
  });
  const answer = <T>(what: string, find: (server: NonNullable<typeof live>) => T): Promise<T> => {
    reads.push(what);
    return live === undefined
      ? Promise.reject(new TransportError('unsent', 'connection refused'))
      : Promise.resolve(find(live));
  };
  let isBefore = true;
  const get = ({ namespace = '', name }: ObjectRef) => {
    const key = joinKey(namespace, name);
    const found = (server: { nads?: Nads }) => {
      const config = (server.nads ?? nads)[key];
      if (config === undefined) throw apiError(404, 'NotFound', 'not found', name);
      return nadDefinition(key, config) as never;
    };
    return isBefore ? Promise.resolve(found({})) : answer(`NAD ${key}`, found);
  };
  const clock = new ManualClock(0);
  const adminPools = new TestInformer<AddressPool>();
  adminPools.set(adminPool('blue'));
  const client = { get: (_resource: Resource, ref: ObjectRef) => get(ref) };
  const lookup = new PoolLookup({ client, clock, adminPools, maxStalenessMs: 30_000 });
  for (const key of Object.keys(nads)) await lookup.loadNad(key, CALL);
  isBefore = false;
  clock.advanceTo(clock.now() + 1);
  const locator = new AttachmentResolver({
    pods: {
      find: () => Promise.resolve(podWith(annotations)),
      read: () =>
        answer('pod', (server) => podWith(server.annotations ?? annotations)).catch((error: unknown) => {
          throw asReadError(error);
        }),
    },
    lookup,
    clock,
    multusNamespace: 'multus',
  });
  const request = readCniRequest(pluginRequest('ADD', { CNI_IFNAME: interfaceName }, config)) as AddRequest;
  const { selection } = await locator.resolve(request, CALL);
  return { nad: `${selection.nad.namespace}/${selection.nad.name}`, position: selection.position, reads };
}

async function refusal(given: Given): Promise<{ code: number; message: string }> {
  const error: unknown = await locate(given).catch((thrown: unknown) => thrown);
  if (error instanceof CniError) return error;
  throw new Error('no refusal', { cause: error });
}

const networks = (...elements: object[]): Annotations => ({ [NETWORKS_ANNOTATION]: JSON.stringify(elements) });

describe('the NAD of a request', () => {
  const found: { name: string; given: Given; expect: { nad: string; position: number } }[] = [
    {
      name: "is the one of the element that requests the interface's name",
      given: { annotations: networks({ name: 'red' }, { name: 'blue', interface: 'x1' }), interfaceName: 'x1' },
      expect: { nad: 'vms/blue', position: 2 },
    },
    {
      name: "is the one of the element that requests it by Multus' old key",
      given: {
        annotations: networks({ name: 'blue', namespace: 'other', interfaceRequest: 'x1' }),
        interfaceName: 'x1',
        config: OTHER_CONFIG,
      },
      expect: { nad: 'other/blue', position: 1 },
    },
    {
      name: 'is found by the ordinal name of Multus, if no element requests the interface name',
      given: { annotations: { [NETWORKS_ANNOTATION]: 'red,blue' }, interfaceName: 'net2' },
      expect: { nad: 'vms/blue', position: 2 },
    },
    {
      name: "is the default network's for the pod's own interface",
      given: { annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'vms/blue' }, interfaceName: 'eth0' },
      expect: { nad: 'vms/blue', position: 0 },
    },
    {
      name: "is the default network's in the namespace of Multus, if it has none",
      given: {
        annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'blue', [NETWORKS_ANNOTATION]: 'other/blue' },
        interfaceName: 'eth0',
      },
      expect: { nad: 'multus/blue', position: 0 },
    },
    {
      name: "is the default network's for the interface that it requests",
      given: {
        annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'vms/blue@x1', [NETWORKS_ANNOTATION]: 'other/blue' },
        interfaceName: 'x1',
      },
      expect: { nad: 'vms/blue', position: 0 },
    },
  ];
  for (const { name, given, expect: expected } of found) {
    it(name, async () => {
      expect(await locate(given)).to.deep.equal({ ...expected, reads: [] });
    });
  }

  it('has the config on stdin, without the keys that Multus and libcni add', async () => {
    const config = {
      args: { cni: { some: 'arg' } },
      runtimeConfig: { mac: '02:00:00:00:00:01' },
      capabilities: { mac: true },
      deviceID: '0000:03:02.0',
      pciBusID: '0000:03:02.0',
    };
    const plugin = { ...NETWORK_CONFIG, capabilities: { mac: true } };
    const listed = { cniVersion: '1.0.0', name: 'blue', plugins: [{ type: 'tuning' }, plugin] };
    const annotations = { [NETWORKS_ANNOTATION]: 'blue' };
    for (const each of [plugin, listed]) {
      expect((await locate({ annotations, nads: { 'vms/blue': each }, config })).nad).to.equal('vms/blue');
    }
  });

  it('is compared by name only if its config is in a file on the node', async () => {
    const annotations = { [NETWORKS_ANNOTATION]: 'blue' };
    expect((await locate({ annotations, nads: { 'vms/blue': '' as never } })).nad).to.equal('vms/blue');
    expect(
      await refusal({ annotations: { [NETWORKS_ANNOTATION]: 'red' }, nads: { 'vms/red': '' as never } }),
    ).to.include({ code: 7 });
  });

  it('is read live if the cached pod does not have the interface yet', async () => {
    const live = { annotations: { [NETWORKS_ANNOTATION]: 'blue' } };
    expect(await locate({ annotations: {}, live })).to.deep.include({
      nad: 'vms/blue',
      reads: ['pod', 'NAD vms/blue'],
    });
  });

  it('is read live if it is not cached, or its cached config is stale', async () => {
    const annotations = { [NETWORKS_ANNOTATION]: 'blue' };
    const live = { nads: { 'vms/blue': NETWORK_CONFIG } };
    expect(await locate({ annotations, nads: {}, live })).to.include({ nad: 'vms/blue' });
    expect(await locate({ annotations, nads: { 'vms/blue': OTHER_CONFIG }, live })).to.include({ nad: 'vms/blue' });
  });

  const refused: { name: string; given: Given; code: number; says: string | RegExp }[] = [
    {
      name: 'no element of the pod is for the interface',
      given: { annotations: { [NETWORKS_ANNOTATION]: 'blue' }, interfaceName: 'eth0' },
      code: 7,
      says: /^interface eth0 of pod vms.p1 is not in its annotations/,
    },
    {
      name: 'the pod has no annotations',
      given: { annotations: {} },
      code: 7,
      says: 'add the NetworkAttachmentDefinition there',
    },
    {
      name: 'the NAD of the element has another config of that network',
      given: { annotations: { [NETWORKS_ANNOTATION]: 'other/blue' } },
      code: 7,
      says: /NetworkAttachmentDefinition other.blue, but the CNI config of the runtime differs from it: the plugin in the NAD has other/,
    },
    {
      name: 'the NAD of the element is for another network',
      given: {
        annotations: { [NETWORKS_ANNOTATION]: 'blue' },
        nads: { 'vms/blue': { ...NETWORK_CONFIG, name: 'red' } },
      },
      code: 7,
      says: 'the NAD names network "red", the config names "blue"',
    },
    {
      name: 'the NAD of the element has another IPAM',
      given: {
        annotations: { [NETWORKS_ANNOTATION]: 'blue' },
        nads: { 'vms/blue': { ...NETWORK_CONFIG, ipam: { type: 'static' } } },
      },
      code: 7,
      says: 'the NAD delegates IPAM to static',
    },
    {
      name: 'the config of the NAD is nested too deeply',
      given: {
        annotations: { [NETWORKS_ANNOTATION]: 'blue' },
        nads: {
          'vms/blue':
            `{"type":"bridge","name":"blue","ipam":{"type":"holdfast"},"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}` as never,
        },
      },
      code: 7,
      says: 'the CNI config of the runtime differs from it',
    },
    {
      name: 'the NAD does not exist',
      given: { annotations: { [NETWORKS_ANNOTATION]: 'gone' } },
      code: 11,
      says: 'NetworkAttachmentDefinition vms/gone, which does not exist',
    },
    {
      name: 'the cache does not match and the API server does not answer',
      given: { annotations: {}, live: undefined },
      code: 11,
      says: 'connection refused',
    },
    {
      name: 'the annotation is invalid',
      given: { annotations: { [NETWORKS_ANNOTATION]: '[{"name": 1}]' } },
      code: 100,
      says: /^annotation k8s\.v1\.cni\.cncf\.io.networks of pod vms.p1 is invalid: element 0/,
    },
    {
      name: 'the annotation of the default network is invalid',
      given: { annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'a,b', [NETWORKS_ANNOTATION]: 'blue' } },
      code: 100,
      says: /^annotation v1\.multus-cni\.io.default-network of pod vms.p1 is invalid: it has more than one element/,
    },
    {
      name: 'the default network has the interface of another network',
      given: { annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'other/blue@net1', [NETWORKS_ANNOTATION]: 'blue' } },
      code: 100,
      says: 'both name interface net1',
    },
  ];
  for (const { name, given, code, says } of refused) {
    it(`is an error if ${name}`, async () => {
      const error = await refusal(given);
      expect(error.code, error.message).to.equal(code);
      expect(error.message).to.match(typeof says === 'string' ? new RegExp(says.replaceAll('/', '.')) : says);
    });
  }
});
